// Prints a description of the types of the Kubernetes API as JSON. From reflection, for every field: its JSON name,
// whether it is omitted if empty, its type, and its protobuf and strategic merge patch tags. From the generated OpenAPI
// definitions: required fields, defaults, enums, and how lists and maps merge.
//
// Arguments: the types to start from, as group/version/Kind (the core group is empty: /v1/Pod).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsbeta "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationbeta "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// special has the types with a custom JSON form.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "int-or-string",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "micro-time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "any",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "any",

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "any",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "any",
}

type field struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	OmitEmpty bool   `json:"omitEmpty"`
	OmitZero  bool   `json:"omitZero"`
	Number    int    `json:"number,omitempty"`
	Within    []int  `json:"within,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	MergeKey  string `json:"mergeKey,omitempty"`

	Required bool  `json:"required,omitempty"`
	Default  *any  `json:"default,omitempty"`
	Enum     []any `json:"enum,omitempty"`
	ListType any   `json:"listType,omitempty"`
	ListKeys any   `json:"listKeys,omitempty"`
	MapType  any   `json:"mapType,omitempty"`
}

type definition struct {
	MapType any     `json:"mapType,omitempty"`
	Fields  []field `json:"fields"`
}

type walk struct {
	Definitions map[string]*definition `json:"definitions"`
	Kinds       map[string]string      `json:"kinds"`
	Registered  map[string][]string    `json:"registered"`
	documented  map[string]common.OpenAPIDefinition
}

// openAPIName returns the name of a type in the OpenAPI document: k8s.io/api/core/v1.Pod is io.k8s.api.core.v1.Pod.
func openAPIName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	parts[0] = strings.Join(host, ".")
	return strings.Join(parts, ".") + "." + t.Name()
}

// expression returns a type in the table's grammar, and defines its structs.
func (w *walk) expression(t reflect.Type) string {
	if word, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		if word == "any" {
			return "any=" + openAPIName(t)
		}
		return word
	}
	name := ""
	if t.PkgPath() != "" && t.Kind() != reflect.Struct {
		name = t.String() + "="
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + w.expression(t.Elem())
	case reflect.Struct:
		w.define(t)
		return openAPIName(t)
	case reflect.Map:
		return name + "map[" + w.expression(t.Key()) + "]" + w.expression(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return name + "bytes"
		}
		return name + "[]" + w.expression(t.Elem())
	default:
		return name + t.Kind().String()
	}
}

func (w *walk) define(t reflect.Type) {
	name := openAPIName(t)
	if _, done := w.Definitions[name]; done {
		return
	}
	// Until Kubernetes 1.34 the keys are Go's names of the types, since then those of the OpenAPI document.
	entry, found := w.documented[name]
	if !found {
		entry = w.documented[t.PkgPath()+"."+t.Name()]
	}
	documented := entry.Schema
	defined := &definition{MapType: documented.Extensions["x-kubernetes-map-type"]}
	w.Definitions[name] = defined
	defined.Fields = w.fields(t, nil)
	for i := range defined.Fields {
		one := &defined.Fields[i]
		one.document(documented.Properties[one.Name])
		one.Required = slices.Contains(documented.Required, one.Name)
	}
}

// document adds the properties of a field that only OpenAPI has. Defaults of structs, which are all empty, are omitted.
func (f *field) document(property spec.Schema) {
	f.ListType = property.Extensions["x-kubernetes-list-type"]
	f.ListKeys = property.Extensions["x-kubernetes-list-map-keys"]
	f.MapType = property.Extensions["x-kubernetes-map-type"]
	f.Enum = property.Enum
	if property.Items != nil && property.Items.Schema != nil {
		f.Enum = append(f.Enum, property.Items.Schema.Enum...)
	}
	if _, isMap := property.Default.(map[string]any); property.Default != nil && !isMap {
		f.Default = &property.Default
	}
}

// fields returns the JSON fields of a struct. Fields of an embedded struct are inlined in JSON, but are in a message of
// their own in protobuf.
func (w *walk) fields(t reflect.Type, within []int) []field {
	found := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag[0] == "-" {
			continue
		}
		number := 0
		if pb := strings.Split(f.Tag.Get("protobuf"), ","); len(pb) > 1 {
			number, _ = strconv.Atoi(pb[1])
		}
		if f.Anonymous && tag[0] == "" {
			found = append(found, w.embedded(f.Type, within, number)...)
			continue
		}
		one := field{Name: tag[0], Number: number, Within: within, Type: w.expression(f.Type),
			Strategy: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey")}
		for _, option := range tag[1:] {
			one.OmitEmpty = one.OmitEmpty || option == "omitempty"
			one.OmitZero = one.OmitZero || option == "omitzero"
		}
		found = append(found, one)
	}
	return found
}

// embedded returns the fields of an embedded struct. TypeMeta has no number: kind and apiVersion are outside the message.
func (w *walk) embedded(t reflect.Type, within []int, number int) []field {
	inner := w.fields(t, append(slices.Clone(within), number))
	if number == 0 {
		for i := range inner {
			inner[i].Number, inner[i].Within = 0, nil
		}
	}
	return inner
}

// registered returns all kinds that have a Go type, served or not, by group and version, without the options of all groups.
func registered() map[string][]string {
	kinds := map[string][]string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" && !strings.HasSuffix(t.PkgPath(), "pkg/apis/meta/v1") {
			kinds[gvk.Group+"/"+gvk.Version] = append(kinds[gvk.Group+"/"+gvk.Version], gvk.Kind)
		}
	}
	for _, names := range kinds {
		slices.Sort(names)
	}
	return kinds
}

func main() {
	metav1.AddToGroupVersion(scheme.Scheme, schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"})
	for _, err := range []error{metav1.AddMetaToScheme(scheme.Scheme), metrics.AddToScheme(scheme.Scheme),
		apiextensions.AddToScheme(scheme.Scheme), apiextensionsbeta.AddToScheme(scheme.Scheme),
		apiregistration.AddToScheme(scheme.Scheme), apiregistrationbeta.AddToScheme(scheme.Scheme)} {
		if err != nil {
			panic(err)
		}
	}
	reference := func(path string) spec.Ref { return spec.MustCreateRef(path) }
	w := &walk{Definitions: map[string]*definition{}, Kinds: map[string]string{}, Registered: registered(),
		documented: openapi.GetOpenAPIDefinitions(reference)}
	for _, argument := range os.Args[1:] {
		parts := strings.Split(argument, "/")
		gvk := schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
		object, err := scheme.Scheme.New(gvk)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", argument, err))
		}
		w.Kinds[argument] = w.expression(reflect.TypeOf(object).Elem())
	}
	if err := json.NewEncoder(os.Stdout).Encode(w); err != nil {
		panic(err)
	}
}
