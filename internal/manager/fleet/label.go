package fleet

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// Limits of labels: the number of labels of a service point, and the bytes of a value.
const (
	maxLabels     = 64
	maxLabelValue = 255
)

// labelName matches the name of a label.
var labelName = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._/-]{0,61}[0-9A-Za-z])?$`)

// checkLabel returns an error if a label is invalid.
func checkLabel(name, value string) error {
	switch {
	case !labelName.MatchString(name):
		return problem.Invalid("labels", "%q is not a label name: use up to 63 letters, digits and . _ / -, the first and the last "+
			"a letter or a digit", name)
	case value == "":
		return problem.Invalid("labels."+name, "must not be empty; null deletes a label")
	case len(value) > maxLabelValue || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return problem.Invalid("labels."+name, "has more than %d bytes, or a control character", maxLabelValue)
	}
	return nil
}

// readLabels adds the labels to service points that were read. places has their index in page by id.
func readLabels(tx *store.Tx, page []Instance, places map[string]int, ids []any) error {
	return tx.Each(func(scan func(...any) error) error {
		var id, name, value string
		if err := scan(&id, &name, &value); err != nil {
			return err
		}
		page[places[id]].Labels[name] = value
		return nil
	}, "SELECT service_point, name, value FROM label WHERE service_point IN ("+placeholders(len(ids))+")", ids...)
}

// Labels returns the labels of a service point, or a problem if the service point does not exist.
func (s *Service) Labels(ctx context.Context, id string) (labels map[string]string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		labels = map[string]string{}
		var there int
		if err := tx.QueryRow("SELECT count(*) FROM service_point WHERE id = ?", id).Scan(&there); err != nil {
			return err
		}
		if there == 0 {
			return UnknownProblem(id)
		}
		return tx.Each(func(scan func(...any) error) error {
			var name, value string
			err := scan(&name, &value)
			labels[name] = value
			return err
		}, "SELECT name, value FROM label WHERE service_point = ?", id)
	})
	return labels, err
}

// relabel changes labels of a service point; nil deletes a label.
func relabel(tx *store.Tx, id string, labels map[string]*string) error {
	for name, value := range labels {
		if value == nil {
			if err := tx.Write("DELETE FROM label WHERE service_point = ? AND name = ?", id, name); err != nil {
				return err
			}
			continue
		}
		if err := checkLabel(name, *value); err != nil {
			return err
		}
		if err := tx.Write("INSERT INTO label (service_point, name, value) VALUES (?,?,?) ON CONFLICT (service_point, name) DO UPDATE SET "+
			"value = excluded.value", id, name, *value); err != nil {
			return err
		}
	}
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM label WHERE service_point = ?", id).Scan(&n); err != nil {
		return err
	}
	if n > maxLabels {
		return problem.Invalid("labels", "%d labels exceed the maximum of %d", n, maxLabels)
	}
	return nil
}
