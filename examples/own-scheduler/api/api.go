// Package api talks to Kubernetes' API in plain JSON, as far as the programs of this example need.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Metadata is what every object has.
type Metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Pod is as much of a pod as matters here.
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

// Team is the kind that this example defines: so many pods, which start together or not at all.
type Team struct {
	Metadata Metadata `json:"metadata"`
	Spec     struct {
		Size    int `json:"size"`
		Seconds int `json:"seconds"`
	} `json:"spec"`
}

// Pods and Teams are where such objects are.
const (
	Pods  = "/api/v1/namespaces/default/pods"
	Teams = "/apis/example.org/v1/namespaces/default/teams"
	Nodes = "/api/v1/nodes"
)

// Label names the team that a pod belongs to.
const Label = "example.org/team"

// Server is the API behind a kubeconfig.
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
	return "", fmt.Errorf("%s names no server", kubeconfig)
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
