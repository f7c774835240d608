/**
 * Short names: CRI-O takes the alias of a name, else tries the name in each search registry
 * (go.podman.io/image pkg/shortnames `Resolve`; cri-o internal/storage/image.go
 * CandidatesForPotentiallyShortImageName).
 */
import { InvalidReference } from '../../src/images/references/grammar.ts';
import { parseNormalized } from '../../src/images/references/reference.ts';
import { invalid, type InvalidConfig } from '../toml.ts';
import type { ShortNameMode } from './crio-conf.ts';
import type { RegistriesConf } from './registries-conf.ts';

/**
 * @param name without tag and digest, as written
 * @param suffix the tag or digest: `:latest`
 * @param mode `enforcing`: a name in several registries is refused
 * @returns what it stands for, in the order of pulls, and the file that names the registries
 * @throws InvalidConfig if CRI-O refuses the name
 */
export function resolveShortName(
  name: string,
  suffix: string,
  { aliases, brokenAliases, search }: Pick<RegistriesConf, 'aliases' | 'brokenAliases' | 'search'>,
  mode: ShortNameMode,
): { readonly references: readonly string[]; readonly file: string } {
  if (brokenAliases) throw refused(name, brokenAliases.message);
  const alias = aliases.get(name);
  if (alias?.repository) return { references: [alias.repository + suffix], file: alias.file };
  const { registries, file } = search ?? { registries: [], file: 'registries.conf' };
  if (registries.length === 0)
    throw refused(name, 'it has no alias, and there are no unqualified-search-registries');
  if (registries.length > 1 && mode === 'enforcing')
    throw refused(
      name,
      `short_name_mode is enforcing, and ${file} has ${registries.length} search registries`,
    );
  const references = registries.map((registry) => {
    try {
      const { domain, path } = parseNormalized(`${registry}/${name}`);
      return `${domain}/${path}${suffix}`;
    } catch (error) {
      if (error instanceof InvalidReference) throw refused(name, error.message);
      throw error;
    }
  });
  return { references, file };
}

function refused(name: string, reason: string): InvalidConfig {
  return invalid(`CRI-O cannot pull the short name ${name}: ${reason}`);
}
