import t from 'tap';
import { noRegistries, parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';
import { resolveShortName } from '../../../daemon/crio/short-names.ts';

const conf = parseRegistriesConf(
  'unqualified-search-registries = ["a.test", "docker.io"]\n[aliases]\napp = "b.test/app"\nnone = ""\n',
  '/r',
);

t.test('a short name is its alias, or a name in each search registry', async (t) => {
  const resolve = (name: string, mode: 'enforcing' | 'disabled' = 'disabled') =>
    resolveShortName(name, ':1', conf, mode).references.join();
  t.equal(resolve('app', 'enforcing'), 'b.test/app:1');
  for (const name of ['nginx', 'none'])
    t.equal(resolve(name), `a.test/${name}:1,docker.io/library/${name}:1`);
  t.equal(resolve('team/app'), 'a.test/team/app:1,docker.io/team/app:1', 'not the alias of another name');
  t.throws(() => resolve('nginx', 'enforcing'), { message: /short_name_mode is enforcing, and \/r has 2/ });
  t.throws(() => resolve('MYREG/app'), { message: /cannot pull the short name MYREG\/app: .*lowercase/ });
  t.throws(() => resolveShortName('nginx', ':1', noRegistries, 'disabled'), {
    message: /there are no unqualified-search-registries/,
  });
});
