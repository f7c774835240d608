/**
 * What differs between versions of containerd, in one place: each rule is named by what it means and says since when it holds
 * (read in the sources of 1.6.20, 1.7.24, 2.0.5, 2.1.4 and 2.4.2). A version that is not known is taken for the newest.
 */

export interface ContainerdRules {
  /** Newest `version` of config.toml that it knows; older files are brought up to it (2: 1.x, 3: 2.0, 4: 2.3). */
  readonly configVersion: number;
  /** 2.0: files of older versions are migrated. Before, plugins have their short name in version 1 and nothing else changes. */
  readonly migrates: boolean;
  /**
   * 2.3: each file is migrated by itself. Before, all of them together are, and one of version 1, once its plugins have their full names,
   * counts as migrated: what it says of the CRI plugin under the old name is lost.
   */
  readonly migratesEachFile: boolean;
  /** 1.7: a file of a newer version keeps containerd from starting. 1.6 takes it for version 2. */
  readonly refusesNewerFiles: boolean;
  /** 2.0: tables of imported files are merged. Before, the table of a plugin replaces the whole one before it. */
  readonly mergesPlugins: boolean;
  /** 1.7: a relative glob of `imports` starts at the importing file, as other imports do; in 1.6 where containerd was started. */
  readonly relativeGlobs: boolean;
  /** Until 2.0: `configs."<host>".tls`. */
  readonly tlsTables: boolean;
  /** 2.1: images are pulled by the transfer service unless something forbids it. */
  readonly transferService: boolean;
  /** 2.2: where neither `config_path` nor mirrors are set, there are default directories. */
  readonly defaultConfigPath: boolean;
  /** 2.0: the order of hosts is that of table headers; before, every key under `host` counts, inline tables too. */
  readonly hostsByHeader: boolean;
  /** 1.7.32: a hosts.toml without any host is valid. */
  readonly hostsOptional: boolean;
  /** 2.2: the capability `referrers`. */
  readonly referrers: boolean;
  /** 2.1: `dial_timeout`. */
  readonly dialTimeout: boolean;
  /** 1.7: https first, then http, for hosts that are written with `http://` and with TLS settings. */
  readonly httpFallback: boolean;
  /** 2.1: headers of a host are sent to its token server too. */
  readonly tokenHeaders: boolean;
}

type Version = readonly [major: number, minor: number, patch: number];

/**
 * The rules of a version.
 * @param version such as `2.1.4`, `v1.7.24` or `1.6.20~ds1`; without one, or with one that cannot be read, the newest
 */
export function rulesFor(version?: string): ContainerdRules {
  const from = since(version === undefined ? undefined : parseVersion(version));
  return {
    configVersion: from(2, 3) ? 4 : from(2) ? 3 : 2,
    migrates: from(2),
    migratesEachFile: from(2, 3),
    refusesNewerFiles: from(1, 7),
    mergesPlugins: from(2),
    relativeGlobs: from(1, 7),
    tlsTables: !from(2),
    transferService: from(2, 1),
    defaultConfigPath: from(2, 2),
    hostsByHeader: from(2),
    hostsOptional: from(1, 7, 32),
    referrers: from(2, 2),
    dialTimeout: from(2, 1),
    httpFallback: from(1, 7),
    tokenHeaders: from(2, 1),
  };
}

/**
 * Reads the numbers of a version.
 * @returns undefined where the text does not begin with any
 */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch] = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?/.exec(text) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  return [Number(major), Number(minor), Number(patch ?? 0)];
}

function since(version: Version | undefined): (major: number, minor?: number, patch?: number) => boolean {
  return (...wanted) => {
    if (version === undefined) return true;
    for (const [index, number] of version.entries()) {
      const least = wanted[index] ?? 0;
      if (number !== least) return number > least;
    }
    return true;
  };
}
