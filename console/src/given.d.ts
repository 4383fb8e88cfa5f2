// What the generator makes (generate/bundle.go).
declare module "*.css"
declare module "portolan:icons" {
  const icons: Record<string, [string, Record<string, string>][]>
  export default icons
}
