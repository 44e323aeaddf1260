/*
 * The three files Hydra leaves in a run's directory, because what drives a
 * benchmark looks into them afterwards: config.yaml (all values),
 * overrides.yaml (arguments as given) and hydra.yaml (where and what).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulate/config_int.h"
#include "emulate/yaml.h"

static bool is_hydra(const char *arg)
{
	return pen__starts_with(arg + strspn(arg, "+~"), "hydra.");
}

/* Arguments as a YAML list: Hydra's own, or all others. */
static void put_args(const struct pen_settings *s, bool hydra, int indent,
		     struct pen_text *t)
{
	const char *p = s->overrides.p;
	char arg[4096];
	size_t n = 0;

	while (p && *p) {
		const size_t len = strcspn(p, "\n");

		snprintf(arg, sizeof(arg), "%.*s", (int)len, p);
		if (is_hydra(arg) == hydra) {
			pen__text_add(t, "%*s- ", indent, "");
			pen__yaml_put_str(t, arg);
			pen__text_put(t, "\n", 1);
			n++;
		}
		p += len + (p[len] == '\n');
	}
	if (!n)
		pen__text_add(t, "%*s[]\n", indent, "");
}

static void put_hydra(const struct pen_config *c, const struct pen_settings *s,
		      struct pen_text *t)
{
	char cwd[4096];

	if (!getcwd(cwd, sizeof(cwd)))
		snprintf(cwd, sizeof(cwd), ".");
	pen__text_add(t, "hydra:\n  run:\n    dir: ");
	pen__yaml_put_str(t, c->run_dir);
	pen__text_add(t, "\n  output_subdir: ");
	pen__yaml_put_str(t, c->output_subdir);
	pen__text_add(t, "\n  overrides:\n    hydra:\n");
	put_args(s, true, 4, t);
	pen__text_add(t, "    task:\n");
	put_args(s, false, 4, t);
	pen__text_add(t, "  job:\n    name: dlio_benchmark\n"
			 "  runtime:\n    version: '1.3'\n"
			 "    version_base: '1.3'\n    cwd: ");
	pen__yaml_put_str(t, cwd);
	pen__text_add(t, "\n    output_dir: ");
	pen__yaml_put_str(t, c->run_dir);
	pen__text_add(t, "\n    choices:\n      workload: ");
	pen__yaml_put_str(t, s->workload ? s->workload : "default");
	pen__text_put(t, "\n", 1);
}

int pen__config_save_hydra(const struct pen_config *c,
			   const struct pen_settings *s, const char *dir,
			   struct pen_err *err)
{
	struct pen_text t = { 0 };
	int rc = pen__make_dirs(dir, 0777, err);

	if (rc)
		return rc;
	pen__text_add(&t, "workload:\n");
	pen__config_yaml(c, s, 2, false, &t);
	rc = pen__text_save_in(&t, dir, "config.yaml", err);
	if (rc)
		return rc;
	put_args(s, false, 0, &t);
	rc = pen__text_save_in(&t, dir, "overrides.yaml", err);
	if (rc)
		return rc;
	put_hydra(c, s, &t);
	return pen__text_save_in(&t, dir, "hydra.yaml", err);
}
