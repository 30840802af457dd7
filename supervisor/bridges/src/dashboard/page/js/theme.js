// Sets the theme before the first paint: what the person chose, else what the system asks for.
(() => {
  const system = matchMedia("(prefers-color-scheme: light)");
  const apply = () => {
    let chosen = null;
    try { chosen = localStorage.getItem("supervisor.theme"); } catch { /* storage is off: the system decides */ }
    const light = chosen === "light" || (chosen !== "dark" && system.matches);
    document.documentElement.dataset.theme = light ? "light" : "dark";
    document.documentElement.dataset.themeChoice = chosen === "light" || chosen === "dark" ? chosen : "system";
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
  addEventListener("supervisor:theme", apply);
})();
