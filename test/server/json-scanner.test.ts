/** Cutting JSON into messages: what JSON.parse takes is taken, byte for byte, and nothing else. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { jsonMessages, JsonSyntaxError, MAX_JSON_DEPTH } from '../../server/json-scanner.ts'

const MAX = 1000

function messages(text: string): string[] {
  return jsonMessages(Buffer.from(text), MAX).map((message) => Buffer.from(message).toString())
}

/** Whether a text is JSON, by the language's own parser. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('jsonMessages()', () => {
  test('takes one level of an array off, and keeps the bytes of each element', () => {
    assert.deepEqual(messages(' {"a" : 1.50, "a":2} '), ['{"a" : 1.50, "a":2}'])
    assert.deepEqual(messages('[[1,2], "]",\n12345678901234567890 ]'), [
      '[1,2]',
      '"]"',
      '12345678901234567890',
    ])
    assert.deepEqual(messages('[]'), [])
    assert.deepEqual(messages('[[]]'), ['[]'])
    assert.deepEqual(messages('"\\u00e9\\\\"'), ['"\\u00e9\\\\"'])
  })

  test('gives back what JSON.parse finds, for any value in any layout', () => {
    const layout = fc.constantFrom(undefined, 1, '\t', '\r\n ')
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), layout, (value, space) => {
        const text = JSON.stringify(value, undefined, space)
        const found = messages(text).map((message) => JSON.parse(message) as unknown)
        // -0 has no form of its own in what was stringified.
        assert.deepEqual(found, Array.isArray(value) ? JSON.parse(text) : [JSON.parse(text)])
      }),
    )
  })

  test('refuses exactly what JSON.parse refuses, for texts that are nearly JSON', () => {
    const part = fc.constantFrom(
      ...['{', '}', '[', ']', ',', ':', '"', '\\', 'u', '0', '1', '-', '+', '.', 'e', 'E', ' '],
      ...['true', 'false', 'null', '"a"', '"\\n"', '"\\u0041"', '{"a":', '\n', '\u0000', 'é'],
    )
    const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(text, (candidate) => {
        assert.equal(accepts(candidate), isJson(candidate), JSON.stringify(candidate))
      }),
      { numRuns: 20_000 },
    )
  })

  test('refuses what is cut off at any byte', () => {
    const text = '{"a":[1.5e+3,true,null,"\\u00e9\\"",{}],"b":-0.1}'
    for (let end = 0; end < text.length; end++) {
      assert.equal(accepts(text.slice(0, end)), false, text.slice(0, end))
    }
    assert.ok(accepts(text))
  })

  test('says where the text stops being JSON', () => {
    assert.throws(
      () => messages('[1,2,x]'),
      (error) => error instanceof JsonSyntaxError && error.at === 5,
    )
  })

  test('takes nesting up to its limit, and no deeper', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
    // The outermost array is taken off, and an empty one needs no place on the stack.
    assert.ok(accepts(nested(MAX_JSON_DEPTH + 2)))
    assert.equal(accepts(nested(MAX_JSON_DEPTH + 3)), false)
  })

  test('takes as many messages as it may, and no more', () => {
    assert.equal(jsonMessages(Buffer.from('[1,2,3]'), 3).length, 3)
    assert.throws(() => jsonMessages(Buffer.from('[1,2,3]'), 2), RangeError)
  })
})

function accepts(text: string): boolean {
  try {
    messages(text)
    return true
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}
