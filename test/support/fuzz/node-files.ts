/** Parsers of the node's files and its plugins' output. */
import { InvalidConfig, fieldsOf, tomlText } from '../../../daemon/toml.ts';
import { imagesTable, migrateConfigFile, parseConfigFile } from '../../../daemon/containerd/config/config.ts';
import { effectiveHosts, mirrorHosts } from '../../../daemon/containerd/endpoint.ts';
import { parseHostsFile } from '../../../daemon/containerd/hosts/hosts-file.ts';
import {
  effectiveConfigPath,
  parseAuth,
  readRegistry,
  searchRoots,
  usesLocalPull,
  validateRegistry,
} from '../../../daemon/containerd/config/registry.ts';
import { rulesFor } from '../../../daemon/containerd/config/rules.ts';
import { credentialIn, parseAuthFile } from '../../../daemon/crio/auth-files.ts';
import { parseImageTable } from '../../../daemon/crio/crio-conf.ts';
import { parseCanonical, pullSources, resolveShortName } from '../../../daemon/crio/pull-sources.ts';
import { parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';
import { parsePolicy, rejectingRule } from '../../../daemon/crio/policy.ts';
import { decodeConfig } from '../../../daemon/kubelet/config/provider-config.ts';
import { PluginError } from '../../../daemon/kubelet/run/plugin-error.ts';
import { decodeResponse } from '../../../daemon/kubelet/run/execute.ts';
import { DecodeError } from '../../../daemon/kubelet/config/strict.ts';
import { validateConfig } from '../../../daemon/kubelet/config/validate-config.ts';
import {
  DockerConfigError,
  parseDockerConfig,
  type DockerConfigFormat,
} from '../../../src/credentials/docker/docker-config.ts';
import {
  HelperConfigError,
  helperOf,
  parseHelperAnswer,
  parseHelperConfig,
} from '../../../src/credentials/docker/credential-helpers.ts';
import { createKeyring, holdEntries } from '../../../src/credentials/keyring/keyring.ts';
import {
  parseRegistryToml,
  registryKey,
  RegistryTomlError,
} from '../../../src/credentials/sources/registry-toml.ts';
import { words } from './inputs.ts';
import type { FuzzTarget } from './target.ts';

const versions = ['1.6.36', '1.7.24', '2.0.0', undefined];

function dockerConfigIn(format: DockerConfigFormat, examples: readonly string[]): FuzzTarget {
  return {
    name: format,
    share: 4,
    runs: 1000,
    examples,
    words: words('{ } "auths": "gcr.io": "AUTH": "auth":"dTpw" "auth":"x" null , [ ] " \\ 1'),
    feed: (input) => {
      const { held } = holdEntries(parseDockerConfig(input, format), '/config.json');
      createKeyring('docker-config', held).lookup('docker.io/library/nginx');
    },
    expected: [DockerConfigError],
  };
}

const dockerConfig = dockerConfigIn('config.json', [
  '{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw","email":"a@b"},"*.gcr.io/team":{"username":"u","password":"p"},"[::1]:5000":{}},"credsStore":"x","HttpHeaders":{"a":"b"}}',
]);

const dockercfg = dockerConfigIn('dockercfg', ['{"quay.io":{"auth":"dTpw\\n","email":""},"gcr.io":null}']);

function authFileIn(format: DockerConfigFormat, examples: readonly string[]): FuzzTarget {
  return {
    name: `auth files of CRI-O: ${format}`,
    share: 4,
    runs: 1000,
    examples,
    words: words('{ } "auths": "credHelpers": "a.test": "auth": "identitytoken": "dTpw" null , [ ] " \\ 1'),
    feed: (input) => {
      const file = parseAuthFile(input, format);
      for (const repository of ['docker.io/library/x', 'a.test/x/y']) {
        credentialIn(file, repository);
      }
    },
    expected: [DockerConfigError],
  };
}

const execV1 = 'credentialprovider.kubelet.k8s.io/v1';

export const nodeFileTargets: readonly FuzzTarget[] = [
  {
    name: 'hosts.toml',
    share: 4,
    runs: 500,
    examples: [
      'server = "https://registry-1.docker.io"\n\n[host."https://mirror.corp:5000/v2/hub"]\n  capabilities = ["pull", "resolve"]\n  ca = ["/etc/ca.pem", "b.pem"]\n  client = [["c.pem", "c.key"], "d.pem"]\n  skip_verify = true\n  override_path = true\n  dial_timeout = "3s"\n  [host."https://mirror.corp:5000/v2/hub".header]\n    x-one = "1"\n    x-two = ["2", "3"]\n',
      '[host."http://[::1]:5000"]\n[host.mirror]\n[host."other".header]\nx = "y"\n',
      "capabilities = ['push']\nca = 'ca.pem'\nskip_verify = false\n[header]\nAuthorization = 'Basic eA=='\n",
    ],
    words: words('[host "] [[ ]] "\\u0041" \'x\' # 0x1F 1979-05-27T07:32:00Z true', ' = ', '\n'),
    feed: (input) => {
      const text = tomlText(input);
      for (const version of versions) {
        const rules = rulesFor(version);
        effectiveHosts(parseHostsFile('/certs.d/docker.io', text, rules), 'docker.io', rules);
      }
    },
    expected: [InvalidConfig],
  },
  {
    name: 'config.toml',
    share: 4,
    runs: 500,
    examples: [
      'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "/etc/containerd/certs.d:/etc/docker/certs.d"\n',
      'version = 3\n[plugins."io.containerd.cri.v1.images".registry]\nconfig_path = "/etc/containerd/certs.d"\n[plugins."io.containerd.cri.v1.images"]\nuse_local_image_pull = true\n',
      '[plugins.cri.registry.mirrors."docker.io"]\nendpoint = ["https://mirror.corp", "http://127.0.0.1:5000"]\n[plugins.cri.registry.configs."mirror.corp".auth]\nusername = "u"\npassword = "p"\nauth = "dTpw"\nidentitytoken = ""\n[plugins.cri.registry.configs."mirror.corp".tls]\ninsecure_skip_verify = true\nca_file = "ca.pem"\n[plugins.cri.registry.auths."https://x"]\nauth = "dTpw"\n[plugins.cri.registry.headers]\nx = ["y"]\n',
    ],
    words: words(
      '[plugins .registry "*" "',
      'version = 4\n',
      'disabled_plugins = ["cri"]\n',
      '\n[',
      ']\n',
      ' = ',
    ),
    feed: (input) => {
      const file = parseConfigFile(tomlText(input));
      for (const version of versions) {
        const rules = rulesFor(version);
        const images = imagesTable(migrateConfigFile(file, 3), rules);
        const table = fieldsOf(images, '').table('registry') ?? {};
        const registry = validateRegistry(readRegistry(table, rules));
        searchRoots(effectiveConfigPath(registry, rules), usesLocalPull(images, rules));
        for (const namespace of ['docker.io', 'localhost:5000', '']) mirrorHosts(registry, namespace);
        for (const { auth } of registry.configs.values()) if (auth) parseAuth(auth);
      }
    },
    expected: [InvalidConfig],
  },
  dockerConfig,
  dockercfg,
  {
    name: 'credential helpers',
    examples: [
      '{"auths":{"a.example":{"identitytoken":"t"}},"credsStore":"desktop","credHelpers":{"https://index.docker.io/v1/":"hub","r.example:5000":"ecr-login"}}',
    ],
    words: words('{ } "credHelpers": "credsStore": "../sh" "x" null , [ ] " \\ 1 docker.io'),
    feed: (input) => {
      const config = parseHelperConfig(input);
      for (const repository of ['docker.io/library/nginx', 'r.example:5000/a']) {
        const name = helperOf(config, repository)?.name ?? 'none';
        if (/[^A-Za-z0-9._-]/.test(name)) throw new TypeError(`a helper ${name}`);
      }
    },
    expected: [HelperConfigError],
  },
  {
    name: 'answers of credential helpers',
    examples: ['{"ServerURL":"https://index.docker.io/v1/","Username":"<token>","Secret":"s"}\n'],
    words: words('{ } "Username": "Secret": "" null , [ ] " \\ 1 <token>'),
    feed: (input) => parseHelperAnswer(input),
    expected: [HelperConfigError],
  },
  authFileIn('config.json', [
    '{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"},"a.test/x":{"auth":"dTo=","identitytoken":"t"},"b.test":{}},"credHelpers":{"c.test":"h"}}',
  ]),
  authFileIn('dockercfg', ['{"a.test":{"auth":"dTpw\\n","email":""},"docker.io":null}']),
  {
    name: 'policy.json',
    share: 4,
    runs: 1000,
    examples: [
      '{"default":[{"type":"reject"}],"transports":{"docker":{"a.test/x":[{"type":"insecureAcceptAnything"}],"*.test":[{"type":"sigstoreSigned","keyPath":"/k"}],"":[{"type":"signedBy"}]},"atomic":{}}}',
    ],
    words: words('{ } "default": "transports": "docker": "type": "reject" null , [ ] " \\ 1'),
    feed: (input) => rejectingRule(parsePolicy(input), 'a.test/x/y:1'),
    expected: [InvalidConfig, DockerConfigError],
  },
  {
    name: 'registries.conf, and what follows for an image',
    share: 4,
    examples: [
      'unqualified-search-registries = ["a.test", "docker.io"]\ncredential-helpers = []\nshort-name-mode = "disabled"\n[aliases]\n"app" = "a.test/app"\n"x" = ""\n',
      '[[registry]]\nprefix = "*.corp.test"\nlocation = "m.test/corp"\nblocked = true\ninsecure = true\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "b.corp.test:5000"\n',
      '[[registry]]\nlocation = "a.corp.test"\n[[registry.mirror]]\nlocation = "m.test"\npull-from-mirror = "tag-only"\n[[registry]]\nlocation = "docker.io"\n',
      '[registries.search]\nregistries = ["a.test/"]\n[registries.insecure]\nregistries = ["b.test"]\n[registries.block]\nregistries = []\n',
    ],
    words: words('[[registry]] [[registry.mirror]] * . / @ : " = app a.corp.test docker.io true', '\n'),
    feed: (input) => {
      const conf = parseRegistriesConf(tomlText(input), '/a.conf');
      for (const name of [
        'a.corp.test:5000/team/x:1',
        ...resolveShortName('app', ':1', conf, 'disabled').references,
      ])
        for (const source of pullSources(name, conf)) parseCanonical(`${source.domain}/${source.path}`);
      return conf.registries.length;
    },
    expected: [InvalidConfig],
  },
  {
    name: 'crio.conf',
    share: 4,
    runs: 500,
    examples: [
      '[crio]\nroot = "/x"\n[crio.image]\nglobal_auth_file = "/a"\nsignature_policy = ""\nsignature_policy_dir = \'/p\'\nshort_name_mode = "disabled"\n',
    ],
    words: words('[crio .image [[ ]] " \' # 1 true', ' = ', '\n'),
    feed: (input) => parseImageTable(tomlText(input)),
    expected: [InvalidConfig],
  },
  {
    name: 'registry TOML',
    runs: 500,
    examples: [
      'user = "me"\nsecret = "hunter22"\n',
      "# ours\nuser='a'\nsecret = '''b\nc'''\n[more]\nx = [1, {y = 2.5}]\n",
    ],
    words: ['user', 'secret', '=', '"', '[', ']', '\n', 'registry.corp_5000_', '.toml', ':'],
    feed: (_, text) => {
      const { username } = parseRegistryToml(text);
      if (username === '') throw new TypeError('a credential without a user');
    },
    expected: [RegistryTomlError],
  },
  {
    name: 'names of registry TOML files',
    share: 20,
    examples: ['docker.io.toml', 'registry.corp_5000_.toml', '*.corp.example.toml', '[::1]:5000.toml'],
    words: ['.', '_', ':', '*', '/', '?', '%41', '@', 'a', '5000', 'https://'],
    feed: (_, text) => registryKey(text),
    expected: [RegistryTomlError],
  },
  {
    name: 'plugin output',
    runs: 500,
    examples: [
      `{"kind":"CredentialProviderResponse","apiVersion":"${execV1}","cacheKeyType":"Registry","cacheDuration":"6h0m0s","auth":{"*.dkr.ecr.*.amazonaws.com":{"username":"AWS","password":"p"}}}`,
      `{"kind":"CredentialProviderResponse","apiVersion":"${execV1}","cacheKeyType":"","auth":null}\n`,
    ],
    words: ['{', '}', '"auth":', '"a":', ',', 'null', '"cacheDuration":', '"1h"', '[]', '"', '\\u0000', '0'],
    feed: (_, text) => decodeResponse(text, execV1),
    expected: [PluginError],
  },
  {
    name: 'CredentialProviderConfig',
    share: 1,
    runs: 300,
    examples: [
      'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: ecr\n  matchImages: ["*.dkr.ecr.*.amazonaws.com", \'public.ecr.aws\']\n  defaultCacheDuration: 12h\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  args: [get-credentials]\n  env:\n    - name: AWS_PROFILE\n      value: x\n  tokenAttributes:\n    serviceAccountTokenAudience: a\n    cacheType: Token\n    requireServiceAccount: true\n    requiredServiceAccountAnnotationKeys: [a/b]\n',
      '{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"CredentialProviderConfig","providers":[{"name":"p","matchImages":["a.io:443/x"],"defaultCacheDuration":"1.5h","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1"}]}',
    ],
    words: words('| > &a *a { } [ ] " # on 0o17', '- ', ': ', '\n', '  ', '? ', '!!str ', '---\n'),
    feed: (_, text) => validateConfig(decodeConfig(text)),
    expected: [DecodeError],
  },
];
