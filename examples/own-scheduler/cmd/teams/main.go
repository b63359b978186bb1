// A scheduler that binds all pods of a team at once, each to a node of its own.
package main

import (
	"flag"
	"log"
	"time"

	"example.org/teams/api"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the API server")
	name := flag.String("scheduler-name", "teams", "schedulerName of the pods to schedule")
	flag.Parse()
	server, err := api.Connect(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	for range time.Tick(time.Second) {
		if err := schedule(server, *name); err != nil {
			log.Print(err)
		}
	}
}

func schedule(server api.Server, name string) error {
	teams, err := api.List[api.Team](server, api.Teams)
	if err != nil {
		return err
	}
	pods, err := api.List[api.Pod](server, api.Pods)
	if err != nil {
		return err
	}
	nodes, err := freeNodes(server, pods)
	if err != nil {
		return err
	}
	for _, team := range teams {
		waiting := members(team, pods, name)
		if len(waiting) < team.Spec.Size || len(nodes) < team.Spec.Size {
			continue
		}
		for index, pod := range waiting {
			if err := bind(server, pod, nodes[index]); err != nil {
				return err
			}
		}
		log.Printf("team %s starts on %d nodes", team.Metadata.Name, team.Spec.Size)
		nodes = nodes[team.Spec.Size:]
	}
	return nil
}

func freeNodes(server api.Server, pods []api.Pod) ([]string, error) {
	nodes, err := api.List[struct{ Metadata api.Metadata }](server, api.Nodes)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, pod := range pods {
		if pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			taken[pod.Spec.NodeName] = true
		}
	}
	var free []string
	for _, node := range nodes {
		if !taken[node.Metadata.Name] {
			free = append(free, node.Metadata.Name)
		}
	}
	return free, nil
}

func members(team api.Team, pods []api.Pod, name string) []string {
	var waiting []string
	for _, pod := range pods {
		isMember := pod.Metadata.Labels[api.Label] == team.Metadata.Name
		if isMember && pod.Spec.NodeName == "" && pod.Spec.SchedulerName == name {
			waiting = append(waiting, pod.Metadata.Name)
		}
	}
	return waiting
}

func bind(server api.Server, pod, node string) error {
	return server.Post(api.Pods+"/"+pod+"/binding", map[string]any{
		"apiVersion": "v1",
		"kind":       "Binding",
		"metadata":   api.Metadata{Name: pod},
		"target":     map[string]string{"apiVersion": "v1", "kind": "Node", "name": node},
	})
}
