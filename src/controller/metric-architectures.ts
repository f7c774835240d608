/** The label `architecture` of metrics: a closed list, so no node or image can grow the number of series. */

/** Architectures that Kubernetes runs on. Any other counts as `other`. */
export const architectures = [
  '386',
  'amd64',
  'arm',
  'arm64',
  'loong64',
  'ppc64le',
  'riscv64',
  's390x',
  'other',
] as const;
