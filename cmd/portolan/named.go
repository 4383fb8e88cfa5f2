package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"portolan/client"
)

// namedBy are the fields that people name the resources of a collection by; those of all others have a name.
var namedBy = map[string]string{"addresses": "address", "blocks": "range", "networks": "range", "ranges": "range", "zones": "absoluteName",
	"resourceRecords": "absoluteName"}

var collectionName = regexp.MustCompile(`^[a-zA-Z0-9]+$`)

// resourceNamed gives the path of the one resource that a text names, such as networks/100717, networks/10.1.0.0/24 or zones/example.net.
// Where several have the name, it is refused.
func resourceNamed(ctx context.Context, cl *client.Client, text string) (path string, err error) {
	collection, name, _ := strings.Cut(text, "/")
	if !collectionName.MatchString(collection) || name == "" {
		return "", usageError{fmt.Errorf("%q is no resource, such as networks/100717, networks/10.1.0.0/24 or zones/example.net", text)}
	}
	if _, err := strconv.ParseInt(name, 10, 64); err == nil {
		return text, nil
	}
	field := namedBy[collection]
	if field == "" {
		field = "name"
	}
	id, err := onlyOne(ctx, cl, collection, field, name, "", "give its number: portolan search "+name+" shows all")
	return fmt.Sprint(collection, "/", id), err
}

// onlyOne gives the id of the one resource of a collection whose field has a value, and that a further condition, such as
// " and disabled:false", lets through; otherwise says what to do where there are several.
func onlyOne(ctx context.Context, cl *client.Client, collection, field, value, condition, otherwise string) (id int64, err error) {
	ids, err := cl.IDs(ctx, collection, field+":"+quoted(value)+condition, 2)
	switch {
	case err != nil:
		return 0, err
	case len(ids) == 0:
		return 0, fmt.Errorf("there is nothing in %s with the %s %q", collection, field, value)
	case len(ids) == 1:
		return ids[0], nil
	}
	return 0, usageError{fmt.Errorf("several of %s have the %s %q: %s", collection, field, value, otherwise)}
}
