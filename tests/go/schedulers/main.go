// A scheduler that misbehaves in a given way, for the tests of `batkube run`.
//
// It is started like kube-scheduler, and reads the address of the server from
// the kubeconfig beside its configuration. Every second it lists pods without a
// node. If it is attached to a run with another scheduler, it has a kubeconfig
// only, and acts once, 90 seconds after its start.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var server string

func main() {
	config := flag.String("config", "", "the configuration file; a kubeconfig is beside it")
	kubeconfig := flag.String("kubeconfig", "", "the kubeconfig, if it is elsewhere")
	way := flag.String("way", "", "how to misbehave")
	flag.Int("secure-port", 0, "not used")
	flag.Int("v", 0, "not used")
	flag.Parse()
	if *kubeconfig == "" {
		*kubeconfig = filepath.Join(filepath.Dir(*config), "kubeconfig")
	}
	server = serverOf(*kubeconfig)
	fmt.Println("about to go the way:", *way)
	if *way == "quits" {
		fmt.Println("cannot go on")
		os.Exit(3)
	}
	if *way == "evicts" || *way == "adds" {
		time.Sleep(90 * time.Second)
		meddle(*way)
		time.Sleep(1000 * time.Hour)
	}
	asked := false
	if *way == "listens" {
		listen(&asked)
	}
	for {
		time.Sleep(time.Second)
		if *way == "listens" && !asked {
			continue
		}
		for _, pod := range waiting() {
			handle(*way, pod)
		}
	}
}

func handle(way, pod string) {
	switch way {
	case "spins":
		for {
		}
	case "idles":
	case "nowhere":
		bind(pod, "nowhere")
	case "crowds", "listens":
		bind(pod, nodes()[0])
	case "twice":
		for _, node := range nodes()[:2] {
			fmt.Println("binding to", node, "gave", bind(pod, node))
		}
	case "copies":
		fmt.Println("binding gave", bindFromFile(pod, nodes()[0]))
	case "killed":
		bind(pod, nodes()[0])
		time.Sleep(5 * time.Second)
		fmt.Println("about to be killed")
		syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	}
}

// listen serves on a free port, and prints its address.
func listen(asked *bool) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Println("listening on", listener.Addr())
	go http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *asked = true }))
}

func meddle(way string) {
	pods := "/api/v1/namespaces/default/pods"
	if way == "adds" {
		fmt.Println("adding gave", post(pods, `{"metadata":{"name":"stray"},"spec":{"containers":[{"name":"a","image":"a"}]}}`))
		return
	}
	for _, pod := range names(pods) {
		body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, pod)
		fmt.Println("evicting gave", post(pods+"/"+pod+"/eviction", body))
	}
}

func serverOf(kubeconfig string) string {
	text, err := os.ReadFile(kubeconfig)
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if _, address, found := strings.Cut(line, "server: "); found {
			return address
		}
	}
	panic("the kubeconfig does not name a server")
}

func waiting() []string {
	return names("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D")
}

func nodes() []string {
	return names("/api/v1/nodes")
}

func names(path string) []string {
	response, err := http.Get(server + path)
	check(err)
	defer response.Body.Close()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	check(json.NewDecoder(response.Body).Decode(&list))
	var found []string
	for _, item := range list.Items {
		found = append(found, item.Metadata.Name)
	}
	return found
}

// bind binds a pod and returns the status code.
func bind(pod, node string) int {
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"kind":"Node","name":%q}}`, pod, node)
	return post("/api/v1/namespaces/default/pods/"+pod+"/binding", body)
}

// bindFromFile is like bind, with a body that the kernel copies from a file (sendfile(2)).
func bindFromFile(pod, node string) int {
	file, err := os.CreateTemp("", "binding")
	check(err)
	fmt.Fprintf(file, `{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"kind":"Node","name":%q}}`, pod, node)
	size, err := file.Seek(0, io.SeekCurrent)
	check(err)
	file.Seek(0, io.SeekStart)
	request, err := http.NewRequest("POST", server+"/api/v1/namespaces/default/pods/"+pod+"/binding", file)
	check(err)
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func post(path, body string) int {
	response, err := http.Post(server+path, "application/json", bytes.NewBufferString(body))
	check(err)
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
