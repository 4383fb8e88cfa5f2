{{- define "portolan.labels" -}}
app.kubernetes.io/name: portolan
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
{{- define "portolan.selector" -}}
app.kubernetes.io/name: portolan
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "portolan.database" -}}
app.kubernetes.io/name: portolan-postgresql
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
