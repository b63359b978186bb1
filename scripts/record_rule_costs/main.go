// Records the estimated costs of rules of CustomResourceDefinitions, and the errors of definitions, with Kubernetes' own
// libraries. Reads tests/api/custom/definitions/rule_costs.json and prints it with their results:
//
//	cd scripts/record_rule_costs && go mod tidy && go run . < ../../tests/api/custom/definitions/rule_costs.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type definition struct {
	Schema   json.RawMessage `json:"schema"`
	Versions int             `json:"versions"`
	Errors   []string        `json:"errors"`
}

type record struct {
	Schema      json.RawMessage   `json:"schema"`
	Costs       map[string]uint64 `json:"costs"`
	Definitions []definition      `json:"definitions"`
}

func read(raw json.RawMessage) *v1.JSONSchemaProps {
	props := &v1.JSONSchemaProps{}
	if err := json.Unmarshal(raw, props); err != nil {
		log.Fatal(err)
	}
	return props
}

// cost returns the estimate of a rule at the root of a schema.
func cost(raw json.RawMessage, rule string) uint64 {
	props := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(read(raw), props, nil); err != nil {
		log.Fatal(err)
	}
	props.XValidations = apiextensions.ValidationRules{{Rule: rule}}
	structural, err := schema.NewStructural(props)
	if err != nil {
		log.Fatal(err)
	}
	environments := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion(), true)
	declared := model.SchemaDeclType(structural, true)
	results, err := cel.Compile(structural, declared, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
	if err != nil {
		log.Fatal(err)
	}
	if results[0].Error != nil {
		log.Fatal(rule, results[0].Error.Detail)
	}
	return results[0].MaxCost
}

// errors returns the validation errors of a definition whose versions have the same schema.
func errors(each definition) []string {
	crd := &v1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.x.io"}}
	crd.Spec.Group, crd.Spec.Scope = "x.io", v1.ClusterScoped
	crd.Spec.Names = v1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"}
	for number := range each.Versions {
		version := v1.CustomResourceDefinitionVersion{Name: fmt.Sprintf("v%d", number+1), Served: true, Storage: number == 0}
		version.Schema = &v1.CustomResourceValidation{OpenAPIV3Schema: read(each.Schema)}
		crd.Spec.Versions = append(crd.Spec.Versions, version)
	}
	v1.SetDefaults_CustomResourceDefinition(crd)
	v1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		log.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1"}
	messages := []string{}
	for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
		messages = append(messages, problem.Error())
	}
	return messages
}

func main() {
	var all record
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		log.Fatal(err)
	}
	for rule := range all.Costs {
		all.Costs[rule] = cost(all.Schema, rule)
	}
	for index := range all.Definitions {
		all.Definitions[index].Errors = errors(all.Definitions[index])
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		log.Fatal(err)
	}
}
