// Encodes objects as the real server does. It reads one object in JSON per line, and prints a line with the object in
// Kubernetes' protobuf (base64) and with the JSON of the decoded protobuf.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type answer struct {
	Protobuf []byte          `json:"protobuf,omitempty"`
	JSON     json.RawMessage `json:"json,omitempty"`
	Problem  string          `json:"problem,omitempty"`
}

func convert(line []byte, wire, text runtime.Serializer) (a answer, err error) {
	object, kind, err := text.Decode(line, nil, nil)
	if err != nil {
		return a, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var out bytes.Buffer
	if err = wire.Encode(object, &out); err != nil {
		return a, err
	}
	a.Protobuf = out.Bytes()
	back, _, err := wire.Decode(a.Protobuf, nil, nil)
	if err != nil {
		return a, err
	}
	back.GetObjectKind().SetGroupVersionKind(*kind)
	a.JSON, err = json.Marshal(back)
	return a, err
}

func main() {
	if apiextensions.AddToScheme(scheme.Scheme) != nil || apiregistration.AddToScheme(scheme.Scheme) != nil {
		os.Exit(1)
	}
	wire := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	text := jsonserializer.NewSerializerWithOptions(
		jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		a, err := convert(lines.Bytes(), wire, text)
		if err != nil {
			a = answer{Problem: err.Error()}
		}
		if answers.Encode(a) != nil {
			os.Exit(1)
		}
	}
}
