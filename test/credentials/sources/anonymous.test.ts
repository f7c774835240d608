import t from 'tap';
import { mayAskAnonymously } from '../../../src/credentials/sources/anonymous.ts';

const cases: [string, string[], boolean][] = [
  ['docker.io/library/nginx', [], true],
  ['docker.io/library/nginx', ['*.corp.example'], true],
  ['eu.corp.example/app', ['*.corp.example'], false],
  ['corp.example/app', ['*.corp.example'], true],
  ['docker.io/team/app', ['gcr.io', 'docker.io/team'], false],
  ['docker.io/other/app', ['docker.io/team'], true],
  ['registry.corp:5000/app', ['registry.corp'], true],
  ['registry.corp:5000/app', ['registry.corp:5000'], false],
  ['gcr.io/app', ['gcr.io:*'], true],
  ['gcr.io:*/app', [], true],
  ['gcr.io:*/app', ['quay.io'], false],
];
for (const [repository, patterns, expected] of cases) {
  t.test(`${repository} with [${patterns.join(', ')}]`, async (t) => {
    t.equal(mayAskAnonymously(repository, patterns), expected);
  });
}
