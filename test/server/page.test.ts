/** The page at `/` in a real browser: what is done to the store shows, and nothing leaves the machine. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { Bifrost } from '../../index.ts'
import { temporaryDirectory } from '../support/temp-dir.ts'
import { openTab, whyNoBrowser } from './browser.ts'
import { JSON_TYPE, post, put, startWeb, type Web } from './web.ts'

const SHOT = process.env['PAGE_SCREENSHOT']
const CALLERS = 24
const STREAMS = ['orders', 'payments', 'mail/outbox', 'audit', 'sensors/roof', 'sessions']

/** Clients that append to some streams until they are stopped, more and less at a time. */
async function load(web: Web, signal: AbortSignal): Promise<void> {
  const one = async (n: number): Promise<void> => {
    while (!signal.aborted) {
      const stream = STREAMS[(n * n) % STREAMS.length] ?? 'orders'
      const body = JSON.stringify({ n, note: 'x'.repeat((n * 37) % 700) })
      assert.equal((await post(web, `/${stream}`, body, JSON_TYPE)).status, 204)
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => one(n)))
}

/** A canvas as it is drawn now. */
function picture(page: Page, id: string): Promise<string> {
  return page.locator(`#${id}`).evaluate((canvas) => (canvas as HTMLCanvas).toDataURL())
}

interface HTMLCanvas {
  toDataURL(): string
}

/** The page forbids the scripts with which playwright waits, so the waiting is done here. */
async function until(what: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await what()); looks++) {
    assert.ok(looks < 300, 'it comes in time')
    await sleep(100)
  }
}

/** Resolves once an element shows a number that is not 0. */
async function untilCounting(page: Page, id: string): Promise<void> {
  await until(async () => /[1-9]/.test(await page.locator(`#${id}`).innerText()))
}

const CANVASES = ['rate', 'records', 'bytes', 'latency']

describe('the page', { skip: whyNoBrowser() ?? false }, () => {
  test('shows logs, tails, trim points, appends per second and histograms as they change', async (t) => {
    const dir = join(await temporaryDirectory(t), 'store')
    const bifrost = await Bifrost.open({ dir, logs: ['trimmed', 'sealed'] })
    await bifrost.appendBatch(
      'trimmed',
      Array.from({ length: 40 }, (_, i) => i),
    )
    await bifrost.trim('trimmed', 25)
    await bifrost.seal('sealed', 'over')
    const web = await startWeb(t, { bifrost })
    for (const stream of STREAMS) await put(web, `/${stream}`, JSON_TYPE)
    const { page, requests, errors } = await openTab(t, 'light')
    await page.goto(web.url)
    const row = (name: string): ReturnType<Page['locator']> =>
      page
        .locator('li')
        .filter({ has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) })
    await row('trimmed').waitFor()
    assert.match(await row('trimmed').innerText(), /26 – 40/)
    assert.match(await row('sealed').innerText(), /empty[^]*sealed/)
    assert.match(await row('/orders').innerText(), /empty/)
    assert.equal(await page.locator('#appends').innerText(), '0')
    const before = new Map<string, string>()
    for (const id of CANVASES) before.set(id, await picture(page, id))

    const stop = new AbortController()
    const loading = load(web, stop.signal)
    await untilCounting(page, 'appends')
    for (const [id, drawn] of before) await until(async () => (await picture(page, id)) !== drawn)
    await row('/orders').getByText(/1 – /).waitFor()
    await untilCounting(page, 'per-sync')
    if (SHOT !== undefined) await takePictures(page, SHOT)
    stop.abort()
    await loading
    const { lsn } = await bifrost.findTail('trimmed')
    await bifrost.trim('trimmed', lsn - 1)
    await row('trimmed').getByText('all trimmed').waitFor()

    assert.deepEqual(errors, [])
    const hosts = new Set(
      requests.map((url) => new URL(url)).map(({ protocol, host }) => protocol + host),
    )
    hosts.delete('data:')
    assert.deepEqual([...hosts], [`http:${new URL(web.url).host}`])
  })

  test('says that the server is gone, and comes back with it', async (t) => {
    const dir = join(await temporaryDirectory(t), 'store')
    const web = await startWeb(t, { dir })
    const { page } = await openTab(t, 'dark')
    await page.goto(web.url)
    await page.locator('body[data-status="open"]').waitFor()
    await page.context().setOffline(true)
    await page.locator('body[data-status="away"]').waitFor()
    assert.match(await page.locator('#notice').innerText(), /^No answer/)
    await page.context().setOffline(false)
    await page.locator('body[data-status="open"]').waitFor()
    assert.equal(await page.locator('#notice').innerText(), '')
  })

  test('sets names of logs as text, whatever they say', async (t) => {
    const name = '<img src=x onerror="document.title=1">'
    const bifrost = await Bifrost.open({ provider: 'memory', logs: [name] })
    const web = await startWeb(t, { bifrost })
    const { page, errors } = await openTab(t, 'dark')
    await page.goto(web.url)
    const shown = page.locator('li .name', { hasText: 'onerror' })
    await shown.waitFor()
    assert.equal(await shown.innerText(), name)
    assert.equal(await page.locator('img').count(), 0)
    assert.deepEqual(errors, [])
  })

  test('finds logs by a part of their names', async (t) => {
    const logs = Array.from({ length: 60 }, (_, i) => `log-${i}`)
    const bifrost = await Bifrost.open({ provider: 'memory', logs })
    const web = await startWeb(t, { bifrost })
    const { page } = await openTab(t, 'light')
    await page.goto(web.url)
    await page.locator('#match').fill('log-59')
    await until(async () => (await page.locator('li').count()) === 1)
    assert.equal(await page.locator('li .name').innerText(), 'log-59')
  })
})

/** For the documents, and for whoever wants to see what the test saw. */
async function takePictures(page: Page, path: string): Promise<void> {
  await sleep(25_000)
  await page.screenshot({ path })
  await page.emulateMedia({ colorScheme: 'dark' })
  await sleep(1500)
  await page.screenshot({ path: path.replace(/\.png$/, '-dark.png') })
}
