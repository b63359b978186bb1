// Package api is a minimal client of the Kubernetes API, in JSON, for the programs of this example.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Metadata is the metadata of an object.
type Metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Pod has the fields of a pod that the example uses.
type Pod struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		NodeName      string `json:"nodeName"`
		SchedulerName string `json:"schedulerName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// Team is the kind that this example defines: a number of pods, which start together or not at all.
type Team struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Size    int `json:"size"`
		Seconds int `json:"seconds"`
	} `json:"spec"`
}

// Pods, Teams and Nodes are the paths of the objects.
const (
	Pods  = "/api/v1/namespaces/default/pods"
	Teams = "/apis/example.org/v1/namespaces/default/teams"
	Nodes = "/api/v1/nodes"
)

// Label is the label with the team of a pod.
const Label = "example.org/team"

// Server is the URL of an API server.
type Server string

// Connect reads the address of the server from a kubeconfig.
func Connect(kubeconfig string) (Server, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if _, address, ok := strings.Cut(line, "server: "); ok {
			return Server(strings.TrimSpace(address)), nil
		}
	}
	return "", fmt.Errorf("%s does not name a server", kubeconfig)
}

// List returns the objects at a path.
func List[T any](server Server, path string) ([]T, error) {
	answer, err := http.Get(string(server) + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	var list struct{ Items []T }
	return list.Items, json.NewDecoder(answer.Body).Decode(&list)
}

// Post creates an object at a path.
func (server Server) Post(path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	answer, err := http.Post(string(server)+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return nil
}
