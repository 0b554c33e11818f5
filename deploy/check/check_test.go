// Package check holds deploy/ against the types of those who will read it:
// Kubernetes, the Prometheus operator, kustomize, Compose, Alertmanager. It is a
// module of its own, so that none of their modules is one of the product's.
//
//	cd deploy/check && go test -count=1 ./...
//
// -count=1, because go's cache of test results does not look at files outside of
// the module, which are what is tested.
package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	operator "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// typed is the type of each kind that may stand in a manifest.
func typed(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "v1 ServiceAccount":
		return new(core.ServiceAccount)
	case "v1 ConfigMap":
		return new(core.ConfigMap)
	case "v1 Namespace":
		return new(core.Namespace)
	case "apps/v1 Deployment":
		return new(apps.Deployment)
	case "apps/v1 DaemonSet":
		return new(apps.DaemonSet)
	case "networking.k8s.io/v1 NetworkPolicy":
		return new(networking.NetworkPolicy)
	case "monitoring.coreos.com/v1 PodMonitor":
		return new(operator.PodMonitor)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return new(operator.PrometheusRule)
	}
	return nil
}

// build is what kustomize makes of a folder, each object decoded strictly: a key
// that its type does not have is an error.
func build(t *testing.T, dir string) (objects []any) {
	t.Helper()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/kubernetes", dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range m.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object := typed(r.GetApiVersion(), r.GetKind())
		if object == nil {
			t.Errorf("%s: no type for %s %s", dir, r.GetApiVersion(), r.GetKind())
			continue
		}
		if err := yaml.UnmarshalStrict(text, object); err != nil {
			t.Errorf("%s: %s %s: %v", dir, r.GetKind(), r.GetName(), err)
		}
		objects = append(objects, object)
	}
	return objects
}

// find is the one object of a type.
func find[T any](t *testing.T, objects []any) *T {
	t.Helper()
	var found []*T
	for _, o := range objects {
		if x, ok := o.(*T); ok {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(found), new(T))
	}
	return found[0]
}

// Every folder with a kustomization is built and decoded, those added later too.
func TestEveryKustomizationIsSound(t *testing.T) {
	n := 0
	err := filepath.WalkDir(filepath.Join(root, "deploy/kubernetes"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "kustomization.yaml" {
			n++
			dir, _ := filepath.Rel(filepath.Join(root, "deploy/kubernetes"), filepath.Dir(path))
			t.Run(dir, func(t *testing.T) {
				if len(build(t, dir)) == 0 {
					t.Error("nothing is built")
				}
			})
		}
		return err
	})
	if err != nil || n < 8 {
		t.Errorf("%d kustomizations: %v", n, err)
	}
}

// TestStrictIsStrict shows that a misspelt key does not pass.
func TestStrictIsStrict(t *testing.T) {
	text := "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {shareProcessNamespaces: true}}}\n"
	if yaml.UnmarshalStrict([]byte(text), typed("apps/v1", "Deployment")) == nil {
		t.Error("a key that is none was taken")
	}
}

func container(t *testing.T, list []core.Container) core.Container {
	t.Helper()
	i := slices.IndexFunc(list, func(c core.Container) bool { return c.Name == "sidecar" })
	if i < 0 {
		t.Fatal("no container sidecar")
	}
	return list[i]
}

// locked checks what every form must hold to, and that no capability is added but
// those named.
func locked(t *testing.T, pod core.PodSpec, c core.Container, capabilities ...core.Capability) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.Capabilities == nil || s.SeccompProfile == nil || s.ReadOnlyRootFilesystem == nil || s.AllowPrivilegeEscalation == nil {
		t.Fatalf("the security context is not complete: %+v", s)
	}
	if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		(s.Privileged != nil && *s.Privileged) {
		t.Errorf("security context %+v", s)
	}
	if !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || !slices.Equal(s.Capabilities.Add, capabilities) {
		t.Errorf("capabilities: drop %v, add %v; want add %v", s.Capabilities.Drop, s.Capabilities.Add, capabilities)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod gets a token for the API server")
	}
	if c.Resources.Limits.Memory().IsZero() || c.LivenessProbe == nil {
		t.Error("no limit of memory, or no liveness probe")
	}
	if c.Resources.Limits.Cpu().Sign() != 0 {
		t.Error("a CPU limit makes lines late just when there are many")
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume %s", m.Name)
		}
	}
	if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == 10404 }) {
		t.Errorf("ports %v", c.Ports)
	}
}

func sameUser(t *testing.T, pod core.PodSpec, c core.Container) {
	t.Helper()
	if pod.ShareProcessNamespace == nil || !*pod.ShareProcessNamespace {
		t.Error("the pid namespace is not shared")
	}
	i := slices.IndexFunc(pod.Containers, func(c core.Container) bool { return c.Name == "tomcat" })
	if i < 0 {
		t.Fatal("the server's container is gone")
	}
	server := pod.Containers[i].SecurityContext
	if *c.SecurityContext.RunAsUser != *server.RunAsUser || *c.SecurityContext.RunAsUser == 0 || !*c.SecurityContext.RunAsNonRoot {
		t.Error("the sidecar is not the server's user")
	}
}

func TestSidecarContainer(t *testing.T) {
	pod := find[apps.Deployment](t, build(t, "overlays/sidecar")).Spec.Template.Spec
	c := container(t, pod.Containers)
	locked(t, pod, c)
	sameUser(t, pod, c)
	if len(pod.InitContainers) != 0 {
		t.Error("init containers in the plain form")
	}
}

func TestNativeSidecar(t *testing.T) {
	pod := find[apps.Deployment](t, build(t, "overlays/native-sidecar")).Spec.Template.Spec
	c := container(t, pod.InitContainers)
	locked(t, pod, c)
	sameUser(t, pod, c)
	if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways {
		t.Error("without restartPolicy Always it is an init container that never ends, and the server never starts")
	}
	if c.StartupProbe == nil {
		t.Error("no startup probe")
	}
}

func TestDaemonSet(t *testing.T) {
	objects := build(t, "overlays/daemonset")
	pod := find[apps.DaemonSet](t, objects).Spec.Template.Spec
	locked(t, pod, container(t, pod.Containers), "SYS_PTRACE", "DAC_READ_SEARCH")
	if !pod.HostPID || pod.HostNetwork || pod.HostIPC {
		t.Errorf("host namespaces: pid %v, net %v, ipc %v", pod.HostPID, pod.HostNetwork, pod.HostIPC)
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil && v.HostPath.Path != "/var/lib/sidecar" {
			t.Errorf("the node's %s is mounted", v.HostPath.Path)
		}
	}
	for _, o := range objects {
		if a, ok := o.(*core.ServiceAccount); ok && (a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken) {
			t.Error("the service account gives out its token")
		}
	}
}

// The PodMonitor must select the pods that the overlays make, by label and port.
func TestPodMonitorSelects(t *testing.T) {
	m := find[operator.PodMonitor](t, build(t, "monitoring"))
	for _, dir := range []string{"overlays/sidecar", "overlays/native-sidecar", "overlays/daemonset"} {
		for _, o := range build(t, dir) {
			var labels map[string]string
			switch o := o.(type) {
			case *apps.Deployment:
				labels = o.Spec.Template.Labels
			case *apps.DaemonSet:
				labels = o.Spec.Template.Labels
			default:
				continue
			}
			for k, v := range m.Spec.Selector.MatchLabels {
				if labels[k] != v {
					t.Errorf("%s: %s is %q, the PodMonitor wants %q", dir, k, labels[k], v)
				}
			}
		}
	}
	if e := m.Spec.PodMetricsEndpoints; len(e) != 1 || e[0].Port == nil || *e[0].Port != "metrics" {
		t.Errorf("endpoints %+v", e)
	}
}

func TestRulesBySet(t *testing.T) {
	for dir, set := range map[string]string{"monitoring": "steady", "overlays/load-run": "load"} {
		objects := build(t, dir)
		r := find[operator.PrometheusRule](t, objects)
		if r.Name != "sidecar-"+set || len(r.Spec.Groups) < 3 {
			t.Errorf("%s: %s with %d groups", dir, r.Name, len(r.Spec.Groups))
		}
		want := operator.Duration("15s")
		if set == "load" {
			want = "1s"
		}
		if got := find[operator.PodMonitor](t, objects).Spec.PodMetricsEndpoints[0].Interval; got != want {
			t.Errorf("%s: a scrape each %s, want %s", dir, got, want)
		}
	}
}

// A ConfigMap holds at most 1 MiB, and a board that is larger would be refused.
func TestDashboardsFit(t *testing.T) {
	boards, n := 0, 0
	for _, o := range build(t, "monitoring") {
		if c, ok := o.(*core.ConfigMap); ok {
			boards++
			n = 0
			for _, v := range c.Data {
				n += len(v)
			}
			if n > 900<<10 || c.Labels["grafana_dashboard"] != "1" {
				t.Errorf("%s: %d bytes, labels %v", c.Name, n, c.Labels)
			}
		}
	}
	if files, _ := filepath.Glob(filepath.Join(root, "dashboards/*.json")); boards != len(files) || boards == 0 {
		t.Errorf("%d of %d dashboards", boards, len(files))
	}
}

// No image may be the newest of whatever: what runs must be known. Only the
// sidecar's own tag is left to the overlay.
func TestImagesAreNamed(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(root, "deploy/kubernetes/overlays/*/*.yaml"))
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok && !strings.Contains(image, ":") && !strings.HasSuffix(image, "/sidecar") {
				t.Errorf("%s: image %s has no tag", path, image)
			}
		}
	}
}
