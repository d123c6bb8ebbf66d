// SPDX-License-Identifier: Apache-2.0

// Gitops keeps a cluster as a folder says, with the engine of Flux: its server-side apply, its idea of drift, its
// readiness (kstatus) and its garbage collection.
//
//	gitops sync -dir FOLDER -inventory FILE [-timeout 30s]   apply, delete what the folder no longer has, wait
//	gitops diff -dir FOLDER                                  say what a sync would change
//
// Exit status: 0 in sync, 1 drift (diff), 2 refused, not ready in time, or failed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	drifted = 1
	failed  = 2
)

func main() {
	log.SetLogger(logr.Discard())
	status, err := command(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(failed)
	}
	os.Exit(status)
}

func command(arguments []string) (int, error) {
	if len(arguments) == 0 {
		return failed, errors.New("say sync or diff")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	folder := flags.String("dir", "", "folder of manifests")
	inventory := flags.String("inventory", "", "file that remembers what was applied")
	timeout := flags.Duration("timeout", 30*time.Second, "how long to wait until everything is ready")
	if err := flags.Parse(arguments[1:]); err != nil {
		return failed, err
	}
	engine, err := connect()
	if err != nil {
		return failed, err
	}
	wanted, err := manifests(*folder)
	if err != nil {
		return failed, err
	}
	engine.SetOwnerLabels(wanted, "teams", "gitops")
	switch arguments[0] {
	case "sync":
		return 0, sync(context.Background(), engine, wanted, *inventory, *timeout)
	case "diff":
		return diff(context.Background(), engine, wanted)
	default:
		return failed, fmt.Errorf("unknown command %q", arguments[0])
	}
}

// connect returns the engine, as Flux's kustomize-controller sets it up, for the cluster of KUBECONFIG.
func connect() (*ssa.ResourceManager, error) {
	configuration, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, err
	}
	transport, err := rest.HTTPClientFor(configuration)
	if err != nil {
		return nil, err
	}
	kinds, err := apiutil.NewDynamicRESTMapper(configuration, transport)
	if err != nil {
		return nil, err
	}
	cluster, err := client.New(configuration, client.Options{HTTPClient: transport, Mapper: kinds})
	if err != nil {
		return nil, err
	}
	readiness := polling.NewStatusPoller(cluster, kinds, polling.Options{})
	owner := ssa.Owner{Field: "kustomize-controller", Group: "kustomize.toolkit.fluxcd.io"}
	return ssa.NewResourceManager(cluster, readiness, owner), nil
}

func sync(
	ctx context.Context, engine *ssa.ResourceManager, wanted []*unstructured.Unstructured, inventory string,
	timeout time.Duration,
) error {
	changes, err := engine.ApplyAllStaged(ctx, wanted, ssa.DefaultApplyOptions())
	if err != nil {
		return err
	}
	for _, change := range changes.Entries {
		fmt.Println(change)
	}
	gone, err := missing(inventory, wanted)
	if err != nil {
		return err
	}
	deletions, err := engine.DeleteAll(ctx, gone, ssa.DefaultDeleteOptions())
	if err != nil {
		return err
	}
	for _, deletion := range deletions.Entries {
		fmt.Println(deletion)
	}
	if err := remember(inventory, wanted); err != nil {
		return err
	}
	patience := ssa.WaitOptions{Interval: 200 * time.Millisecond, Timeout: timeout, FailFast: true}
	if err := engine.WaitForTermination(gone, patience); err != nil {
		return err
	}
	return engine.WaitForSet(changes.ToObjMetadataSet(), patience)
}

func diff(ctx context.Context, engine *ssa.ResourceManager, wanted []*unstructured.Unstructured) (int, error) {
	status := 0
	for _, object := range wanted {
		change, _, _, err := engine.Diff(ctx, object, ssa.DefaultDiffOptions())
		if err != nil {
			return failed, err
		}
		if change.Action != ssa.UnchangedAction {
			fmt.Println(change)
			status = drifted
		}
	}
	return status, nil
}

// manifests reads every YAML document of a folder.
func manifests(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml")) // sorted
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := utils.ReadObjects(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	return all, normalize.UnstructuredList(all)
}

// missing returns what the inventory has and the folder has not.
func missing(inventory string, wanted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(inventory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var before []*unstructured.Unstructured
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, err
	}
	stays := map[string]bool{}
	for _, object := range wanted {
		stays[identity(object)] = true
	}
	var gone []*unstructured.Unstructured
	for _, object := range before {
		if !stays[identity(object)] {
			gone = append(gone, object)
		}
	}
	return gone, nil
}

func remember(inventory string, applied []*unstructured.Unstructured) error {
	text, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	return os.WriteFile(inventory, text, 0o600)
}

func identity(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}
