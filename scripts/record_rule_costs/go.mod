module record_rule_costs

go 1.24.0

require k8s.io/apiextensions-apiserver v0.34.4
