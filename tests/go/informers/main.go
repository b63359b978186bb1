// The informers program watches a cluster as controllers do, and prints the state of its caches.
//
// It runs informers of client-go, typed and dynamic, with and without selectors. Their handlers add keys to a work
// queue. A worker records, for each key, the version in the informer's store at that time, so a lost or duplicate event
// causes a difference. For every line on standard input it prints a line of JSON: by informer, the version of each
// object in the informer's store ("stored") and in the worker's record ("worked").
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// follower is an informer with its queue and the record of its worker.
type follower struct {
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
	lock     sync.Mutex
	worked   map[string]string
}

func follow(informer cache.SharedIndexInformer) *follower {
	f := &follower{
		informer: informer,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		worked:   map[string]string{},
	}
	enqueue := func(obj interface{}) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			fatal(err)
		}
		f.queue.Add(key)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj interface{}) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		fatal(err)
	}
	return f
}

// work handles one key at a time, as controllers do.
func (f *follower) work() {
	for {
		key, stopped := f.queue.Get()
		if stopped {
			return
		}
		obj, exists, err := f.informer.GetStore().GetByKey(key)
		if err != nil {
			fatal(err)
		}
		f.lock.Lock()
		if exists {
			f.worked[key] = version(obj)
		} else {
			delete(f.worked, key)
		}
		f.lock.Unlock()
		f.queue.Forget(key)
		f.queue.Done(key)
	}
}

func (f *follower) told() map[string]map[string]string {
	stored := map[string]string{}
	for _, key := range f.informer.GetStore().ListKeys() {
		if obj, exists, _ := f.informer.GetStore().GetByKey(key); exists {
			stored[key] = version(obj)
		}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	worked := make(map[string]string, len(f.worked))
	for key, value := range f.worked {
		worked[key] = value
	}
	return map[string]map[string]string{"stored": stored, "worked": worked}
}

func version(obj interface{}) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		fatal(err)
	}
	return accessor.GetResourceVersion()
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	url := flag.String("server", "", "where the API server is")
	token := flag.String("token", "", "bearer token")
	contentType := flag.String("content-type", "application/json", "what the typed clients speak")
	flag.Parse()

	plain := &rest.Config{Host: *url, BearerToken: *token, QPS: 1000, Burst: 1000}
	typed := rest.CopyConfig(plain)
	typed.ContentType = *contentType
	typed.AcceptContentTypes = *contentType + ",application/json"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		fatal(err)
	}
	unstructured, err := dynamic.NewForConfig(plain)
	if err != nil {
		fatal(err)
	}

	all := informers.NewSharedInformerFactory(client, 0)
	front := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("one"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" }))
	unbound := informers.NewSharedInformerFactoryWithOptions(client, 500*time.Millisecond,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" }))
	loose := dynamicinformer.NewDynamicSharedInformerFactory(unstructured, 0)

	followers := map[string]*follower{
		"pods":       follow(all.Core().V1().Pods().Informer()),
		"configmaps": follow(all.Core().V1().ConfigMaps().Informer()),
		"front":      follow(front.Core().V1().Pods().Informer()),
		"unbound":    follow(unbound.Core().V1().Pods().Informer()),
		"dynamic": follow(loose.ForResource(
			schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Informer()),
	}
	stop := make(chan struct{})
	all.Start(stop)
	front.Start(stop)
	unbound.Start(stop)
	loose.Start(stop)
	for _, f := range followers {
		go f.work()
	}
	for _, f := range followers {
		if !cache.WaitForCacheSync(stop, f.informer.HasSynced) {
			fatal(fmt.Errorf("an informer does not get its first list"))
		}
	}
	answer := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		told := map[string]map[string]map[string]string{}
		for name, f := range followers {
			told[name] = f.told()
		}
		if err := answer.Encode(told); err != nil {
			fatal(err)
		}
	}
}
