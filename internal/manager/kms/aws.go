package kms

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// awsKey is a key of AWS KMS (its API reference: Encrypt, Decrypt).
type awsKey struct {
	key, region, endpoint, profile string
	// context is the encryption context: AWS unwraps a key only with the context that it was wrapped with.
	context map[string]string
}

// contextPrefix is the prefix of the parameters with the encryption context.
const contextPrefix = "context_"

// newAWS reads the parameters region, profile and context_NAME. The default region is that of the key's ARN, AWS_REGION or
// AWS_DEFAULT_REGION. AWS_ENDPOINT_URL_KMS and AWS_ENDPOINT_URL change the endpoint.
func newAWS(key string, parameters url.Values) (*awsKey, error) {
	k := &awsKey{key: key, region: parameters.Get("region"), profile: parameters.Get("profile"), context: map[string]string{}}
	for name := range parameters {
		about, ok := strings.CutPrefix(name, contextPrefix)
		if ok {
			k.context[about] = parameters.Get(name)
		} else if !slices.Contains([]string{"region", "profile"}, name) {
			return nil, fmt.Errorf("parameter %s is not known: use region, profile or context_NAME", name)
		}
	}
	if parts := strings.Split(key, ":"); k.region == "" && len(parts) > 3 && parts[0] == "arn" { // arn:aws:kms:REGION:ACCOUNT:key/ID
		k.region = parts[3]
	}
	if k.region = cmp.Or(k.region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")); k.region == "" {
		return nil, errors.New("set the region: awskms://KEY?region=REGION")
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(k.region, "cn-") {
		domain += ".cn"
	}
	k.endpoint = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_KMS"), os.Getenv("AWS_ENDPOINT_URL"), "https://kms."+k.region+"."+domain)
	return k, nil
}

func (k *awsKey) wrap(ctx context.Context, key []byte) ([]byte, error) {
	var answer struct{ CiphertextBlob []byte }
	if err := k.ask(ctx, "Encrypt", map[string]any{"KeyId": k.key, "Plaintext": key}, &answer); err != nil {
		return nil, err
	}
	if len(answer.CiphertextBlob) == 0 {
		return nil, errors.New("the answer has no CiphertextBlob")
	}
	return answer.CiphertextBlob, nil
}

func (k *awsKey) unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	var answer struct{ Plaintext []byte }
	err := k.ask(ctx, "Decrypt", map[string]any{"CiphertextBlob": wrapped}, &answer)
	return answer.Plaintext, err
}

// ask sends a signed request.
func (k *awsKey) ask(ctx context.Context, action string, body map[string]any, into any) error {
	if len(k.context) > 0 {
		body["EncryptionContext"] = k.context
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, k.endpoint, bytes.NewReader(text))
	if err != nil {
		return err
	}
	who, err := k.credentials(ctx)
	if err != nil {
		return err
	}
	rq.Header.Set("Content-Type", "application/x-amz-json-1.1")
	rq.Header.Set("X-Amz-Target", "TrentService."+action)
	signer{who.AccessKeyID, who.SecretAccessKey, who.SessionToken, k.region, "kms"}.sign(rq, text, time.Now())
	return post(http.DefaultClient, rq, into)
}

// credentials returns the credentials from the environment, from the credentials file or from the machine's role: a web identity, a
// container or an instance.
func (k *awsKey) credentials(ctx context.Context) (credentials.Value, error) {
	all := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: k.profile}}
	if k.profile != "" {
		all = all[1:]
	}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" ||
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")+os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" {
		all = append(all, &credentials.IAM{})
	}
	chain := credentials.NewChainCredentials(all)
	client := &http.Client{Transport: withContext{ctx}}
	who, err := chain.GetWithContext(&credentials.CredContext{Client: client})
	if err == nil && who.AccessKeyID == "" {
		err = errors.New("none found in the environment (AWS_ACCESS_KEY_ID), in the credentials file, or for a role of the machine")
	}
	if err != nil {
		return who, fmt.Errorf("the credentials of AWS: %w", err)
	}
	return who, nil
}

// withContext is a transport that cancels requests when a context ends.
type withContext struct{ ctx context.Context } //nolint:containedctx // a Transport has no other way to get one

// RoundTrip sends a request.
func (w withContext) RoundTrip(rq *http.Request) (*http.Response, error) {
	return http.DefaultTransport.RoundTrip(rq.WithContext(w.ctx))
}
