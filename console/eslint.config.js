import { createRequire } from "node:module"

// `make console-lint` installs the tools there.
const tools = createRequire(new URL("../bin/.console/package.json", import.meta.url))
const a11y = tools("eslint-plugin-jsx-a11y")
const hooks = tools("eslint-plugin-react-hooks")
const ts = tools("typescript-eslint")

// Setters are named after their state, so that a reader sees what a call changes.
const setters = {
  selector: "VariableDeclarator[init.callee.name='useState'] > ArrayPattern > Identifier.elements:nth-child(2):not([name=/^set[A-Z]/])",
  message: "A setter is named after its state: [name, setName].",
}

// Screens import parts and modules, and parts import modules.
const layers = (patterns) => ({
  "no-restricted-imports": ["error", { patterns: [{ group: patterns, message: "Screens import parts, parts import modules, and not the other way." }] }],
})

export default [
  { ignores: ["**/types.ts"] },
  {
    files: ["src/**/*.{ts,tsx}"],
    languageOptions: { parser: ts.parser, parserOptions: { ecmaFeatures: { jsx: true } } },
    plugins: { "react-hooks": hooks, "jsx-a11y": a11y },
    settings: { "jsx-a11y": { attributes: { for: ["for"] } } },
    rules: {
      ...a11y.flatConfigs.recommended.rules,
      "react-hooks/rules-of-hooks": "error",
      "no-restricted-syntax": ["error", setters],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      // axe judges these in a browser (accessible_test.go), where it sees the focus that a grid or a list hands on.
      "jsx-a11y/interactive-supports-focus": "off",
      "jsx-a11y/no-interactive-element-to-noninteractive-role": "off",
      "jsx-a11y/no-noninteractive-tabindex": "off",
      "jsx-a11y/no-noninteractive-element-interactions": ["error", { dialog: ["onMouseDown", "onCancel"] }],
    },
  },
  { files: ["src/parts/**"], rules: layers(["**/screens/**"]) },
  { files: ["src/*.{ts,tsx}"], ignores: ["src/main.tsx", "src/frame.tsx"], rules: layers(["./screens/**", "./parts/**"]) },
  { files: ["src/frame.tsx"], rules: layers(["./screens/**"]) },
]
