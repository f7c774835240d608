/**
 * Differences between versions of containerd (from the sources of 1.6.20, 1.7.24, 2.0.5, 2.1.4 and 2.4.2). Each rule has the version
 * that introduced it. An unknown version has the rules of the newest.
 */

export interface ContainerdRules {
  /** Newest supported `version` of config.toml; older files are migrated to it (2: 1.x, 3: 2.0, 4: 2.3). */
  readonly configVersion: number;
  /** 2.0: files of older versions are migrated. Before, files of version 1 use short plugin names and nothing else differs. */
  readonly migrates: boolean;
  /**
   * 2.3: each file is migrated before it is merged. Before, the merged files are migrated together, and a file of version 1 counts as
   * migrated once its plugins have their full names: its settings of the old CRI plugin are lost.
   */
  readonly migratesEachFile: boolean;
  /** 1.7: containerd does not start with a file of a newer version. 1.6 reads it as version 2. */
  readonly refusesNewerFiles: boolean;
  /** 2.0: tables of imported files are merged. Before, the table of a plugin replaces an earlier one. */
  readonly mergesPlugins: boolean;
  /** 1.7: a relative pattern of `imports` starts at the importing file; in 1.6, at the working directory of containerd. */
  readonly relativeGlobs: boolean;
  /** Before 2.0: `configs."<host>".tls`. */
  readonly tlsTables: boolean;
  /** 2.1: the transfer service pulls images unless a setting excludes it. */
  readonly transferService: boolean;
  /** 2.2: `config_path` has a default if mirrors are not set. */
  readonly defaultConfigPath: boolean;
  /** 2.0: hosts have the order of their table headers. Before, every key of `host` counts, inline tables too. */
  readonly hostsByHeader: boolean;
  /** 1.7.32: a hosts.toml without hosts is valid. */
  readonly hostsOptional: boolean;
  /** 2.2: the capability `referrers`. */
  readonly referrers: boolean;
  /** 2.1: `dial_timeout`. */
  readonly dialTimeout: boolean;
  /** 1.7: a host with `http://` and TLS settings is tried by https first, then by http. */
  readonly httpFallback: boolean;
  /** 2.1: headers of a host are also sent to its token server. */
  readonly tokenHeaders: boolean;
}

type Version = readonly [major: number, minor: number, patch: number];

/**
 * The rules of a version.
 * @param version such as `2.1.4`, `v1.7.24` or `1.6.20~ds1`. Default, also for unreadable versions: the newest
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
 * The numbers of a version.
 * @returns undefined if the text does not begin with a version
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
