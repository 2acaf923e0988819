/** A real browser without a screen: Debian's chromium, driven by playwright-core. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { TestContext } from 'node:test'
import { chromium, type Page } from 'playwright-core'

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const WHERE = findChromium()

/** Why there is no browser here. Where everything must hold, its absence is a failure. */
export function whyNoBrowser(): string | undefined {
  if (WHERE !== undefined) return undefined
  const reason = 'chromium is not installed'
  const { CI, BIFROST_LONG } = process.env
  if (CI !== undefined || BIFROST_LONG !== undefined) throw new Error(reason)
  return reason
}

function findChromium(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'chromium')).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export interface Tab {
  readonly page: Page
  /** Everything that it asked for. */
  readonly requests: readonly string[]
  /** Errors of its console, and what its scripts threw. */
  readonly errors: readonly string[]
}

/** Opens a tab; the browser ends with the test. */
export async function openTab(t: TestContext, scheme: 'light' | 'dark'): Promise<Tab> {
  const browser = await chromium.launch({ executablePath: WHERE ?? '', args: ARGUMENTS })
  t.after(() => browser.close())
  const viewport = { width: 1200, height: 900 }
  const page = await browser.newPage({ colorScheme: scheme, viewport })
  const requests: string[] = []
  const errors: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  return { page, requests, errors }
}
