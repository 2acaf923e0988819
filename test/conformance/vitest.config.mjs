/** How vitest runs the conformance suite: one file, with no watch, no retries and no cache. */
import { defineConfig } from 'vitest/config'

const config = defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['durable-streams.spec.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    cache: false,
  },
})

export { config as default }
