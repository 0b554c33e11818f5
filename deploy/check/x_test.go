package check
import (
 _ "k8s.io/api/apps/v1"
 _ "k8s.io/api/core/v1"
 _ "k8s.io/api/rbac/v1"
 _ "k8s.io/api/networking/v1"
 _ "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
 _ "sigs.k8s.io/kustomize/api/krusty"
 _ "sigs.k8s.io/kustomize/kyaml/filesys"
 _ "sigs.k8s.io/yaml"
)
