/** Examples in the documentation show what the program prints. */
import t from 'tap';
import { run } from '../cmd/run.ts';
import { files, registry } from '../cmd/world.ts';
import { image, multiArch } from '../support/registry/content.ts';
import { page } from './pages.ts';

t.test('docs/use/explain.md: a Deployment and the decision for its pods', async (t) => {
  const mirror = await registry(t, { tls: false });
  const push = (name: string, content: ReturnType<typeof image>) =>
    mirror.push(name, name === 'shop/web' ? '3' : '1', content, 'registry.example.com');
  push('shop/web', multiArch(['linux/amd64', 'linux/arm64']));
  push('team/log-shipper', image('linux/amd64'));
  const { blocks } = page('docs/use/explain.md');
  const textOf = (language: string) => blocks.find((block) => block.language === language)?.text ?? '';
  const { config, 'deployment.yaml': file } = files(t, {
    config: 'preferredArchitecture = "arm64"\n',
    'deployment.yaml': textOf('yaml'),
  });
  const { out, code } = await run([
    'explain',
    '--local',
    `--config=${config}`,
    `--proxies=registry.example.com=${mirror.url}`,
    '--docker-config=',
    `--filename=${file}`,
  ]);
  t.equal(code, 0);
  const shown = out.replaceAll(mirror.host, 'registry.example.com').replace(file, 'deployment.yaml');
  t.equal(shown.trim(), textOf('text').trim());
});
