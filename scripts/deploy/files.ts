/** The plain manifests in `deploy/`, for clusters without Helm: the chart rendered with its defaults. */

/** Renders the chart with values and further flags of `helm template`. */
export type Render = (values: object, args: readonly string[]) => string;

const namespace = `apiVersion: v1
kind: Namespace
metadata:
  name: archwright
  labels:
    # The agent reads files of its node.
    pod-security.kubernetes.io/enforce: privileged
`;

function header(text: string): string {
  return `# Made by \`npm run deploy\` from charts/archwright; edit that instead.\n${text}`;
}

/** Only Helm keeps definitions when the rest is deleted. */
const withoutHelm = { crds: { keep: false } };

/** Removes what only Helm maintains. */
function plain(rendered: string): string {
  return rendered
    .replaceAll(/^ *(?:app\.kubernetes\.io\/managed-by: Helm|helm\.sh\/chart: .*)\n/gm, '')
    .replaceAll(/[ \t]+$/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
    .trimEnd();
}

/** The objects of `archwright clean`, a hook of Helm, as they are for kubectl. */
function hooks(rendered: string): string {
  const documents = rendered.split(/^---\n/m).filter((text) => text.includes('component: clean\n'));
  return documents
    .map((text) => plain(text.replaceAll(/^ *annotations:\n(?: *helm\.sh\/hook.*\n)+/gm, '')))
    .join('\n---\n');
}

function ofReport(rendered: string): string {
  const documents = rendered.split(/^---\n/m).filter((text) => text.includes('component: report\n'));
  return documents.map(plain).join('\n---\n');
}

export const deployFiles: Readonly<Record<string, (render: Render) => string>> = {
  'deploy/archwright.yaml': (render) =>
    header(
      `# kubectl apply --server-side -f archwright.yaml; to uninstall: clean.yaml first.\n${namespace}${plain(render(withoutHelm, ['--no-hooks']))}\n`,
    ),
  'deploy/clean.yaml': (render) =>
    header(
      '# Before `kubectl delete --ignore-not-found -f archwright.yaml`: kubectl apply -f clean.yaml, and wait for\n' +
        '#   kubectl -n archwright wait --for=condition=complete --timeout=5m job/archwright-clean\n' +
        `# Then kubectl delete -f clean.yaml.\n---\n${hooks(render({}, []))}\n`,
    ),
  'deploy/report.yaml': (render) =>
    header(
      `# The report on a schedule: kubectl apply --server-side -f report.yaml\n---\n${ofReport(render({ report: { enabled: true } }, []))}\n`,
    ),
  'deploy/kustomization.yaml': () =>
    header(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - archwright.yaml
`),
};
