// A controller that creates the pods of each team once.
package main

import (
	"flag"
	"fmt"
	"log"
	"time"

	"example.org/teams/api"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the API server")
	name := flag.String("scheduler-name", "teams", "scheduler of the pods")
	flag.Parse()
	server, err := api.Connect(*kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	done := map[string]bool{}
	for range time.Tick(time.Second) {
		teams, err := api.List[api.Team](server, api.Teams)
		if err != nil {
			log.Fatal(err)
		}
		for _, team := range teams {
			if done[team.Metadata.Name] {
				continue
			}
			done[team.Metadata.Name] = true
			for rank := range team.Spec.Size {
				if err := server.Post(api.Pods, pod(team, rank, *name)); err != nil {
					log.Print(err)
				}
			}
		}
	}
}

func pod(team api.Team, rank int, scheduler string) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata": api.Metadata{
			Name:   fmt.Sprintf("%s-%d", team.Metadata.Name, rank),
			Labels: map[string]string{api.Label: team.Metadata.Name},
		},
		"spec": map[string]any{
			"schedulerName":     scheduler,
			"priorityClassName": "team-work",
			"restartPolicy":     "Never",
			"containers": []map[string]any{{
				"name":    "work",
				"image":   "busybox",
				"command": []string{"sleep", fmt.Sprint(team.Spec.Seconds)},
			}},
		},
	}
}
