// Looks up images by the library of CRI-O, with the node in a directory: one JSON object a line in, one out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sirupsen/logrus"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/shortnames"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
)

type question struct {
	Root, Image, AuthFile, User, Password string
	Ambiguous                             bool
	Environment                           map[string]string
}

type answer struct{ Digest, Platform, Error string }

func main() {
	logrus.SetLevel(logrus.ErrorLevel)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		found, err := pull(asked)
		if err != nil {
			found = answer{Error: err.Error()}
		}
		if err := answers.Encode(found); err != nil {
			panic(err)
		}
	}
}

// Every candidate of a short name in turn; the last error counts.
func pull(asked question) (answer, error) {
	ctx, done := context.WithTimeout(context.Background(), 50*time.Second)
	defer done()
	sysregistriesv2.InvalidateCache()
	for name, value := range asked.Environment {
		os.Setenv(name, value)
		defer os.Unsetenv(name)
	}
	mode := types.ShortNameModeEnforcing
	if asked.Ambiguous {
		mode = types.ShortNameModeDisabled
	}
	node := &types.SystemContext{
		RootForImplicitAbsolutePaths: asked.Root,
		UserShortNameAliasConfPath:   asked.Root + "/var/cache/containers/short-name-aliases.conf",
		AuthFilePath:                 asked.AuthFile,
		ShortNameMode:                &mode,
		ArchitectureChoice:           "amd64",
		OSChoice:                     "linux",
	}
	if asked.User != "" {
		node.DockerAuthConfig = &types.DockerAuthConfig{Username: asked.User, Password: asked.Password}
	}
	resolved, err := shortnames.Resolve(node, asked.Image)
	if err != nil {
		return answer{}, err
	}
	var found answer
	for _, candidate := range resolved.PullCandidates {
		if found, err = resolve(ctx, node, candidate.Value); err == nil {
			return found, nil
		}
	}
	return answer{}, err
}

// The manifest, its child for the platform, and the config.
func resolve(ctx context.Context, node *types.SystemContext, name reference.Named) (answer, error) {
	if exact, ok := name.(reference.Canonical); ok {
		var err error
		if name, err = reference.WithDigest(reference.TrimNamed(name), exact.Digest()); err != nil {
			return answer{}, err
		}
	}
	source, err := docker.NewReference(name)
	if err != nil {
		return answer{}, err
	}
	rules, err := signature.DefaultPolicy(node)
	if err != nil {
		return answer{}, err
	}
	policy, err := signature.NewPolicyContext(rules)
	if err != nil {
		return answer{}, err
	}
	defer policy.Destroy()
	registry, err := source.NewImageSource(ctx, node)
	if err != nil {
		return answer{}, err
	}
	defer registry.Close()
	unparsed := image.UnparsedInstance(registry, nil)
	bytes, kind, err := unparsed.Manifest(ctx)
	if err != nil {
		return answer{}, err
	}
	found := answer{Digest: digest.FromBytes(bytes).String()}
	if manifest.MIMETypeIsMultiImage(kind) {
		index, err := manifest.ListFromBlob(bytes, kind)
		if err != nil {
			return answer{}, err
		}
		child, err := index.ChooseInstance(node)
		if err != nil {
			return answer{}, err
		}
		unparsed = image.UnparsedInstance(registry, &child)
	}
	if allowed, err := policy.IsRunningImageAllowed(ctx, unparsed); !allowed {
		return answer{}, err
	}
	parsed, err := image.FromUnparsedImage(ctx, node, unparsed)
	if err != nil {
		return answer{}, err
	}
	config, err := parsed.OCIConfig(ctx)
	if err != nil {
		return answer{}, err
	}
	found.Platform = config.OS + "/" + config.Architecture
	return found, nil
}
