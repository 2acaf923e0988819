/** The rules of this project that no published ESLint plugin has. */

const DIRECTIVE = /^\s*eslint-disable/

/** A file opens with a comment that states its role. */
const opensWithRole = {
  meta: { type: 'suggestion', messages: { role: 'Open the file with a comment: its role.' } },
  create: ({ report, sourceCode }) => ({
    Program(node) {
      const [first] = sourceCode.getAllComments()
      const code = sourceCode.getFirstToken(node)
      const opens =
        first && (!code || first.range[0] < code.range[0]) && !DIRECTIVE.test(first.value)
      if (!opens) report({ node, loc: { line: 1, column: 0 }, messageId: 'role' })
    },
  }),
}

/** Whoever switches a rule off says why, on the same line. */
const reasonedDisable = {
  meta: { type: 'suggestion', messages: { reason: 'Give the reason after ` -- `.' } },
  create: ({ report, sourceCode }) => ({
    Program() {
      for (const comment of sourceCode.getAllComments()) {
        if (!DIRECTIVE.test(comment.value) || / -- \S/.test(comment.value)) continue
        report({ loc: comment.loc, messageId: 'reason' })
      }
    },
  }),
}

export const house = {
  rules: { 'opens-with-role': opensWithRole, 'reasoned-disable': reasonedDisable },
}
