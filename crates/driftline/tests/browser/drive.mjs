// Drives the pages with a real browser: node drive.mjs FOLDER-WITH-node_modules PLAN.json
//
// The plan: {chromium, open, begun, empty, closed, token, shots, program, folder, news}: the browser; the addresses of a
// server on a full store, on one without a baseline, on none, and behind a token; where screenshots go; and how something new is observed.
// Prints one line for each claim and exits with 1 at the first that does not hold.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [modules, planFile] = process.argv.slice(2);
const require = createRequire(join(modules, 'package.json'));
const { chromium } = require('playwright-core');
const { AxeBuilder } = require('@axe-core/playwright');
const plan = JSON.parse(readFileSync(planFile, 'utf8'));
mkdirSync(plan.shots, { recursive: true });

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e';
const SHOWN = '"><img src=x onerror=alert(1)><script>alert(2)</script>\\u{202e}';
const resourceUrl = (id) => `/resource?id=${encodeURIComponent(id)}`;
const VIEWS = {
  overview: '/',
  drift: '/drift',
  filtered: '/drift?status=not_checked&sort=id',
  nothing: '/drift?q=there-is-no-such-thing',
  resource: resourceUrl('arn:aws:ec2:us-east-1:123456789012:security-group/sg-9ea657e9cecc70fb3'),
  hostile: resourceUrl(HOSTILE),
  topology: '/topology',
  posture: '/posture',
  versions: '/versions',
  compare: '/compare?from=24h&to=now',
  rules: '/rules',
  missing: '/there-is-no-such-page',
};

const browser = await chromium.launch({ executablePath: plan.chromium, args: ['--no-sandbox'] });
const trouble = [];

// A window that reports whatever the browser complains about.
async function open(options = {}, base = plan.open) {
  const context = await browser.newContext({ baseURL: base, viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(60000);
  const page = await context.newPage();
  // Runs before the page, with the rights of the driver and not of the page.
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
  }
  page.on('console', (message) => {
    const isOurs404 = message.text().includes('404') && page.url().includes('/there-is-no-such-page');
    if (['error', 'warning'].includes(message.type()) && !isOurs404) trouble.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => trouble.push(`${page.url()}: ${error}`));
  page.on('dialog', (dialog) => {
    trouble.push(`${page.url()}: a dialog says ${dialog.message()}`);
    dialog.dismiss();
  });
  return page;
}

// A browser says of every answer with an error that it is one.
function expect(status) {
  trouble.splice(0, trouble.length, ...trouble.filter((line) => !(line.includes('Failed to load') && status.test(line))));
}

const quiet = () => assert.deepEqual(trouble, []);
const ids = (page) => page.locator('.findings tbody th .id').allInnerTexts();
const headline = (page) => page.locator('h1').innerText();

async function check(claim, what) {
  try {
    await what();
    quiet();
    console.log(`ok: ${claim}`);
  } catch (error) {
    console.log(`FAILED: ${claim}\n${error.stack}\n${trouble.join('\n')}`);
    await browser.close();
    process.exit(1);
  }
}

async function withoutBarriers(page, name) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const bad = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  assert.deepEqual(bad.map(({ id, nodes }) => `${name}: ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`), []);
}

for (const colorScheme of ['light', 'dark']) {
  await check(`every view works and has no barriers, ${colorScheme}`, async () => {
    const page = await open({ colorScheme });
    for (const [name, path] of Object.entries(VIEWS)) {
      const answer = await page.goto(path);
      assert.equal(answer.status(), name === 'missing' ? 404 : 200, name);
      assert.equal(await page.locator('h1').count(), 1, name);
      // Folded parts are pages, too.
      await page.evaluate(() => document.querySelectorAll('main details').forEach((one) => (one.open = true)));
      await withoutBarriers(page, name);
      await page.screenshot({ path: join(plan.shots, `${name}-${colorScheme}.png`), fullPage: true });
    }
    await page.context().close();
  });
}

await check('on a phone nothing is cut off and nothing scrolls sideways', async () => {
  const page = await open({ viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
  for (const [name, path] of Object.entries(VIEWS)) {
    await page.goto(path);
    await page.evaluate(() => document.querySelectorAll('main details').forEach((one) => (one.open = true)));
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${name} is ${width} wide`);
    await page.screenshot({ path: join(plan.shots, `${name}-phone.png`), fullPage: true });
  }
  await page.context().close();
});

await check('no view weighs more than a hundred kilobytes, unpacked', async () => {
  const page = await open();
  for (const [name, path] of Object.entries(VIEWS)) {
    let weight = 0;
    const answers = [];
    page.removeAllListeners('response');
    page.on('response', (answer) => {
      if (!answer.url().endsWith('/events')) answers.push(answer.body().catch(() => ''));
    });
    await page.goto(path, { waitUntil: 'load' });
    for (const body of await Promise.all(answers)) weight += body.length;
    console.log(`   ${name}: ${weight} bytes`);
    assert.ok(weight <= 100_000, `${name} weighs ${weight} bytes`);
  }
  await page.context().close();
});

await check('it can be printed', async () => {
  const page = await open();
  for (const name of ['overview', 'drift', 'resource']) {
    await page.goto(VIEWS[name]);
    await page.emulateMedia({ media: 'print' });
    assert.ok(!(await page.locator('header nav').isVisible()));
    await page.screenshot({ path: join(plan.shots, `${name}-print.png`), fullPage: true });
  }
  await page.context().close();
});

await check('a hostile name is text and nothing else', async () => {
  const page = await open();
  await page.goto('/drift?source=hostile/names');
  assert.ok((await ids(page)).includes(SHOWN), String(await ids(page)));
  await page.locator('.findings tbody th a').filter({ hasText: 'onerror' }).click();
  assert.equal(await page.locator('main .lead.id').innerText(), SHOWN);
  assert.equal(await page.locator('img, main script, iframe').count(), 0);
  await page.context().close();
});

await check('filters narrow, sort and clear', async () => {
  const page = await open();
  await page.goto('/drift');
  await page.locator('.quick a', { hasText: 'drifted' }).click();
  const drifted = await page.locator('.findings tbody tr').count();
  assert.ok(drifted > 0 && drifted === (await page.locator('.findings tbody tr.drifted').count()));
  await page.getByLabel('Search').fill('drift-state-test-fn');
  await page.getByRole('button', { name: 'Filter' }).click();
  assert.equal(await page.locator('.findings tbody tr').count(), 1);
  assert.equal(await page.getByLabel('Search').inputValue(), 'drift-state-test-fn');
  await page.getByRole('link', { name: 'Clear' }).click();
  assert.equal(new URL(page.url()).search, '');
  await page.getByText('More filters').click();
  await page.getByLabel('Source').selectOption({ index: 1 });
  await page.getByLabel('not checked', { exact: true }).check();
  await page.getByRole('button', { name: 'Filter' }).click();
  const chosen = await page.getByLabel('Source').inputValue();
  assert.ok(new URL(page.url()).searchParams.getAll('source').includes(chosen));
  for (const source of await page.locator('.findings tbody td[data-label=Source]').allInnerTexts()) assert.equal(source, chosen);
  await page.goto('/drift?status=not_checked');
  await page.getByRole('link', { name: 'Resource and what changed' }).click();
  assert.equal(await page.locator('th[aria-sort=ascending]').innerText(), 'Resource and what changed ▲');
  const up = await ids(page);
  assert.deepEqual(up, [...up].sort());
  await page.getByRole('link', { name: 'Resource and what changed' }).click();
  assert.equal(await page.locator('th[aria-sort=descending]').count(), 1);
  await page.goto(VIEWS.nothing);
  assert.match(await page.locator('.empty').innerText(), /No finding matches/);
  await page.context().close();
});

await check('pages follow each other without a gap, and their links hold', async () => {
  const page = await open();
  const seen = [];
  await page.goto('/drift?status=not_checked&limit=40');
  for (;;) {
    seen.push(...(await ids(page)));
    const next = page.getByRole('link', { name: 'Next' });
    if (!(await next.count())) break;
    await next.click();
  }
  const total = Number((await page.locator('.pager p').innerText()).match(/of ([\d,]+)/)[1].replace(',', ''));
  assert.equal(seen.length, total);
  assert.equal(new Set(seen).size, total);
  const last = await ids(page);
  await page.goto(page.url());
  assert.deepEqual(await ids(page), last);
  await page.getByRole('link', { name: 'Previous' }).click();
  assert.deepEqual(await ids(page), seen.slice(-last.length - 40, -last.length));
  await page.context().close();
});

await check('a resource tells its change, its rules, its life and itself side by side', async () => {
  const page = await open();
  await page.goto(VIEWS.resource);
  assert.match(await headline(page), /^Modified, high/);
  assert.match(await page.locator('.sides tbody').first().innerText(), /ingressRuleCount\s+0\s+1/);
  const whole = page.getByText('The whole of it, side by side');
  await whole.click();
  assert.ok(await page.locator('.diff tr.changed').first().isVisible());
  assert.ok((await page.locator('.life > li').count()) >= 2);
  await page.context().close();
});

await check('points in time can be chosen: versions, compare, topology, with and without a slider', async () => {
  const page = await open();
  await page.goto('/versions');
  await page.getByLabel('From').fill('24h');
  await page.getByRole('button', { name: 'Compare' }).click();
  assert.match(page.url(), /\/compare\?from=24h&to=now/);
  assert.ok((await page.locator('.findings tbody tr').count()) > 0);
  await page.goto('/topology');
  const changed = await headline(page);
  assert.match(changed, /added/);
  assert.ok(await page.locator('.topology svg').isVisible());
  const slider = page.locator('#slider');
  assert.ok(await slider.isVisible());
  await slider.focus();
  await Promise.all([page.waitForURL(/[?&]to=2/), slider.press('Home')]);
  assert.notEqual(await headline(page), changed);
  await page.context().close();
});

await check('keys move, select and can be switched off', async () => {
  const page = await open();
  await page.goto('/drift');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'q');
  await page.keyboard.type('jk?');
  assert.equal(await page.getByLabel('Search').inputValue(), 'jk?');
  await page.getByLabel('Search').fill('');
  await page.locator('h1').click();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  assert.equal(await page.evaluate(() => [...document.querySelectorAll('.findings tbody tr')].indexOf(document.activeElement.closest('tr'))), 0);
  await page.keyboard.press('x');
  assert.ok(await page.locator('tbody input[name=finding]').first().isChecked());
  assert.equal((await page.locator('#chosen').innerText()).trim(), '1');
  await page.getByLabel('Select every row').check();
  assert.equal(await page.locator('tbody input[name=finding]:not(:checked)').count(), 0);
  await page.getByLabel('Select every row').uncheck();
  await page.locator('h1').click();
  await page.keyboard.press('?');
  assert.ok(await page.locator('#help').isVisible());
  await withoutBarriers(page, 'help');
  await page.screenshot({ path: join(plan.shots, 'help.png') });
  await page.getByLabel('Use these keys').uncheck();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  assert.ok(!(await page.locator('#help').isVisible()));
  await page.keyboard.press('Tab');
  await page.context().close();
});

await check('without JavaScript it all works', async () => {
  const page = await open({ javaScriptEnabled: false });
  for (const [name, path] of Object.entries(VIEWS)) {
    const answer = await page.goto(path);
    assert.equal(answer.status(), name === 'missing' ? 404 : 200);
    assert.ok(await page.locator('h1').isVisible(), name);
  }
  await page.goto('/drift');
  assert.ok(!(await page.locator('#all').isVisible()) && !(await page.locator('#keys').isVisible()));
  await page.getByLabel('Search').fill('drift-state-test-rule');
  await page.getByRole('button', { name: 'Filter' }).click();
  assert.ok((await ids(page)).every((id) => id.includes('drift-state-test-rule')));
  await page.goto('/topology');
  assert.ok(!(await page.locator('#slider').isVisible()));
  await page.getByLabel('To', { exact: true }).selectOption({ index: 0 });
  await page.getByRole('button', { name: 'Show' }).click();
  assert.match(page.url(), /to=2/);
  await page.goto('/drift?q=drift-state-test-alerts&status=unknown');
  const before = await ids(page);
  await page.locator('tbody input[name=finding]').first().check();
  await page.getByLabel('Reason').fill('planned, without a script');
  await page.getByLabel('Your name').fill('noscript');
  await page.getByRole('button', { name: 'Accept' }).click();
  assert.match(await page.locator('.notice').innerText(), /1/);
  assert.equal((await page.locator('.findings tbody tr').count()), before.length - 1);
  await page.context().close();
});

await check('what is accepted with a reason is gone, and who said so is remembered', async () => {
  const page = await open();
  await page.goto('/drift?status=drifted');
  const row = page.locator('.findings tbody tr', { hasText: 'drift-state-test-fn' });
  await row.locator('input[name=finding]').check();
  await page.getByLabel('Your name').fill('mara');
  await page.getByRole('button', { name: 'Accept' }).click();
  assert.match(page.url(), /status=drifted/, 'without a reason nothing is sent');
  await page.getByLabel('Reason').fill('the import needs "30" seconds <b>');
  await page.screenshot({ path: join(plan.shots, 'accepting.png') });
  await page.getByRole('button', { name: 'Accept' }).click();
  await page.locator('.notice').waitFor();
  assert.match(page.url(), /\/drift\?status=drifted/);
  assert.equal(await row.count(), 0);
  await page.screenshot({ path: join(plan.shots, 'accepted.png') });
  await page.context().close();
});

await check('news are shown where nobody is busy, and only told where somebody is', async () => {
  const [wall, desk, late] = [await open(), await open(), await open()];
  await late.goto('/drift?source=hostile/names&status=unknown');
  await late.locator('.findings tbody tr', { hasText: 'evil.example' }).locator('input[name=finding]').check();
  await late.getByLabel('Reason').fill('too "late"');
  await late.getByLabel('Your name').fill('kim');
  await wall.goto('/');
  await desk.goto('/drift');
  await wall.evaluate(() => {
    window.untouched = true;
    document.querySelector('#course').scrollIntoView();
  });
  await wall.getByText('The same as a table').click();
  await desk.getByLabel('Reason').fill('half a rea');
  const place = await desk.evaluate(() => scrollY);
  const [before, scrolled] = [await headline(wall), await wall.evaluate(() => scrollY)];
  execFileSync(plan.program, ['observe', 'file', plan.news], { cwd: plan.folder });
  await wall.locator('#live', { hasText: 'Up to date' }).waitFor();
  assert.notEqual(await headline(wall), before);
  assert.ok(await wall.evaluate(() => window.untouched), 'the page was not loaded again');
  assert.ok(await wall.locator('details[open]', { hasText: 'The same as a table' }).count(), 'what was open stays open');
  assert.equal(await wall.evaluate(() => scrollY), scrolled);
  await desk.locator('#live button').waitFor();
  assert.equal(await desk.getByLabel('Reason').inputValue(), 'half a rea');
  assert.equal(await desk.evaluate(() => document.activeElement.name), 'reason');
  assert.equal(await desk.evaluate(() => scrollY), place);
  await withoutBarriers(desk, 'news');
  await desk.screenshot({ path: join(plan.shots, 'news.png') });
  await desk.locator('#live button').click();
  await desk.locator('#live', { hasText: 'Up to date' }).waitFor();
  assert.match(await desk.locator('main').innerText(), /news-just-in/);
  // What was selected here is another thing by now: it is not accepted unseen, and what was typed is still there.
  await late.locator('#live button').waitFor();
  assert.equal(await late.locator('tbody input[name=finding]:checked').count(), 1);
  await late.getByRole('button', { name: 'Accept' }).click();
  await late.waitForURL(/\/accept/);
  expect(/409/);
  assert.equal(await late.getByLabel('Reason').inputValue(), 'too "late"');
  await withoutBarriers(late, 'accept again');
  await late.screenshot({ path: join(plan.shots, 'accept-again.png'), fullPage: true });
  await late.getByRole('link', { name: 'Back to where you were' }).click();
  assert.match(late.url(), /source=hostile/);
  for (const page of [wall, desk, late]) await page.context().close();
});

await check('accepting nothing is refused, and what was typed is said', async () => {
  const page = await open();
  await page.goto('/drift');
  await page.getByLabel('Reason').fill('for nothing');
  await page.getByLabel('Your name').fill('kim');
  await page.getByRole('button', { name: 'Accept' }).click();
  await page.waitForURL(/\/accept/);
  expect(/400/);
  assert.match(await page.locator('main').innerText(), /for nothing/);
  await page.context().close();
});

await check('a store without a baseline says what to do', async () => {
  const page = await open({}, plan.begun);
  for (const path of ['/', '/drift', '/topology', '/posture', '/rules']) {
    await page.goto(path);
    assert.match(await page.locator('main').innerText(), /driftline baseline set/, path);
    await withoutBarriers(page, `begun ${path}`);
  }
  await page.goto('/');
  assert.match(await headline(page), /no baseline/);
  await page.screenshot({ path: join(plan.shots, 'begun.png'), fullPage: true });
  await page.context().close();
});

await check('a store without anything says what to do', async () => {
  const page = await open({}, plan.empty);
  for (const path of ['/', '/drift', '/topology', '/posture', '/versions', '/rules']) {
    await page.goto(path);
    assert.match(await page.locator('main').innerText(), /driftline observe|driftline demo/, path);
    await withoutBarriers(page, `empty ${path}`);
  }
  await page.screenshot({ path: join(plan.shots, 'empty.png') });
  await page.context().close();
});

await check('a token is asked for, a wrong one refused, and the way leads on', async () => {
  const page = await open({}, plan.closed);
  await page.goto('/drift?status=drifted');
  await withoutBarriers(page, 'sign in');
  await page.screenshot({ path: join(plan.shots, 'sign-in.png') });
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token').fill(plan.token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(/\/drift\?status=drifted/);
  assert.equal(await page.locator('form[action="/accept"]').count(), 0, 'a token to read does not write');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  expect(/40[13]/);
  await page.context().close();
});

await browser.close();
