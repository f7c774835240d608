/**
 * Which container a version of Windows runs. Source: containerd/platforms `platform_windows_compat.go`
 * (v1.0.0-rc.5), after Microsoft's version compatibility table.
 */

const ltsc2022 = 20348;
const ltsc2025 = 26100;

/** Releases with a stable ABI, newest first. A host also runs containers of the release before its own. */
const stableReleases = [ltsc2025, ltsc2022];

/**
 * Whether a host of one version runs a container of another, such as `10.0.17763`. An unknown host version,
 * and a container without version, fit everything.
 */
export function windowsVersionMatches(host: string, container: string): boolean {
  const hostVersion = parseVersion(host);
  if (hostVersion === undefined || container === '') return true;
  const { major, minor, build } = parseVersion(container) ?? { major: 0, minor: 0, build: 0 };
  if (hostVersion.major !== major || hostVersion.minor !== minor) return false;
  if (hostVersion.build < ltsc2022) return hostVersion.build === build;
  const generation = stableReleases.findIndex((release) => hostVersion.build >= release);
  const oldest = stableReleases[generation + 1] ?? ltsc2022;
  return oldest <= build && build <= hostVersion.build;
}

function parseVersion(text: string) {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,5})(?:\.|$)/.exec(text);
  if (match === null) return undefined;
  const [major = 0, minor = 0, build = 0] = match.slice(1).map(Number);
  const fits = major <= 0xff && minor <= 0xff && build <= 0xffff;
  return fits && major + minor + build > 0 ? { major, minor, build } : undefined;
}
