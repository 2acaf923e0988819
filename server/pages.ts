/** The paths that are no streams: the page, its figures, the metrics, and whether all is well. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Registry } from 'prom-client'
import type { CommitWatch } from './commit-watch.ts'
import type { HttpReply } from './exchange.ts'
import type { HandlerParts } from './handler-parts.ts'
import type { Operation } from './router.ts'
import { statsReply } from './stats.ts'

const STATS_PATH = '/__bifrost/stats'

/** The operations by their paths. */
export function makePages(registry: Registry, commits: CommitWatch): Map<string, Operation> {
  const page = pageReply()
  return new Map<string, Operation>([
    ['/', async () => page],
    ['/healthz', async (parts) => healthReply(parts)],
    ['/metrics', () => metricsReply(registry)],
    [STATS_PATH, (parts, request) => statsReply(parts, commits, request)],
  ])
}

/** Nothing but what is in the page itself may run or be shown, and it talks to this server only. */
function pageReply(): HttpReply {
  const body = readFileSync(new URL('./page.html', import.meta.url), 'utf8')
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(body, 'script')}`,
    `style-src ${hashOf(body, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  }
  return { status: 200, headers, body }
}

/** What names the one element of a kind in a content security policy. */
function hashOf(html: string, element: string): string {
  const content = new RegExp(`<${element}>(.*?)</${element}>`, 's').exec(html)?.[1] ?? ''
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`
}

/** 200 while the store takes appends. */
function healthReply({ bifrost: { status, failure } }: HandlerParts): HttpReply {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  const body = `${JSON.stringify({ status, failure: failure?.code })}\n`
  return { status: status === 'open' ? 200 : 503, headers, body }
}

async function metricsReply(registry: Registry): Promise<HttpReply> {
  const body = await registry.metrics()
  const headers = { 'content-type': registry.contentType, 'cache-control': 'no-store' }
  return { status: 200, headers, body }
}
