package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"portolan/client"
)

// answers starts a manager stub that returns fixed responses by method and path.
func answers(paths map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, there := paths[r.Method+" "+r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			text = `{"status":404,"code":"ResourceNotFound","message":"network 7 does not exist"}`
		}
		_, _ = w.Write([]byte(text))
	}))
}

// ExampleClient_All reads a list page by page.
func ExampleClient_All() {
	manager := answers(map[string]string{"GET /api/v2/networks": `{"data":[{"range":"10.1.0.0/24"},{"range":"10.2.0.0/24"}],"count":2}`})
	defer manager.Close()
	c := &client.Client{Base: manager.URL, Token: "ptl_example"}
	err := c.All(context.Background(), "networks", client.Query{Filter: "name:startsWith('lab')", Fields: "range"},
		func(row json.RawMessage) error {
			var network struct{ Range string }
			if err := json.Unmarshal(row, &network); err != nil {
				return err
			}
			fmt.Println(network.Range)
			return nil
		})
	fmt.Println(err)
	// Output:
	// 10.1.0.0/24
	// 10.2.0.0/24
	// <nil>
}

// ExampleClient_Create creates a resource below another resource. The response contains the new resource.
func ExampleClient_Create() {
	manager := answers(map[string]string{"POST /api/v2/blocks/4/networks": `{"id":7,"type":"IPv4Network","range":"10.1.0.0/24"}`})
	defer manager.Close()
	c := &client.Client{Base: manager.URL, Token: "ptl_example"}
	var network struct{ ID int64 }
	err := c.Create(context.Background(), "blocks/4/networks", map[string]string{"type": "IPv4Network", "range": "10.1.0.0/24"}, &network)
	fmt.Println(network.ID, err)
	// Output: 7 <nil>
}

// ExampleError reads the status and the code of the API from the Error of a rejected request.
func ExampleError() {
	manager := answers(nil)
	defer manager.Close()
	c := &client.Client{Base: manager.URL, Token: "ptl_example"}
	err := c.Get(context.Background(), "networks/7", nil)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		fmt.Println("not found:", refused.Message)
	}
	// Output: not found: network 7 does not exist
}
