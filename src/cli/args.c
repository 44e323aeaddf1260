/* Arguments: flags, key=value settings and paths, in any order. */
#include <string.h>

#include "cli/cli.h"

static const struct flag *find_flag(const struct command *cmd, const char *arg,
				    size_t n)
{
	for (const struct flag *f = cmd->flags; f && f->name; f++)
		if (strlen(f->name) == n && !strncmp(f->name, arg, n))
			return f;
	return NULL;
}

/* The setting that "--batch-size" or "--batch-size=4" means. */
static bool find_setting(const struct command *cmd, const char *arg, char *name,
			 size_t cap)
{
	struct pen_option o;

	snprintf(name, cap, "%.*s", (int)strcspn(arg, "="), arg);
	for (char *dash = name; (dash = strchr(dash, '-'));)
		*dash = '_';
	for (const struct pen_opt *p = cmd->opts; p && p->name; p++)
		if (!strcmp(p->name, name))
			return true;
	for (uint32_t i = 0; cmd->takes_spec &&
			     !pen_option_at("loader", NULL, i, &o, sizeof(o));
	     i++)
		if (!strcmp(o.name, name))
			return true;
	return false;
}

static int bad_flag(const struct command *cmd, const char *arg)
{
	const char *names[32], *near;
	char setting[64];
	size_t n = 0;

	if (!strncmp(arg, "--", 2) &&
	    find_setting(cmd, arg + 2, setting, sizeof(setting))) {
		complain_usage(P_UNKNOWN_NAME, cmd->name,
			       "'%s' is a setting, not a flag; write it as "
			       "%s=VALUE",
			       arg, setting);
		return ARG_BAD;
	}
	for (const struct flag *f = cmd->flags; f && f->name && n < 31; f++)
		names[n++] = f->name;
	names[n] = NULL;
	near = pen__nearest(arg, names);
	complain_usage(P_UNKNOWN_NAME, cmd->name,
		       near ? "unknown flag '%s'; did you mean '%s'?"
			    : "unknown flag '%s'; see `penstock %s --help`",
		       arg, near ? near : cmd->name);
	return ARG_BAD;
}

static int take_flag(struct args *a, const char *arg)
{
	const char *eq = strchr(arg, '=');
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct flag *f = find_flag(a->cmd, arg, n);

	if (!f || n >= sizeof(a->key))
		return bad_flag(a->cmd, arg);
	memcpy(a->key, arg, n);
	a->key[n] = '\0';
	a->value = eq ? eq + 1 : NULL;
	if (f->arg && f->arg[0] != '[' && !a->value) {
		if (a->at >= a->argc) {
			complain_usage(P_MISSING_SETTING, a->cmd->name,
				       "%s needs %s", f->name, f->arg);
			return ARG_BAD;
		}
		a->value = a->argv[a->at++];
	}
	if (!f->arg && a->value) {
		complain_usage(P_BAD_VALUE, a->cmd->name, "%s takes no value",
			       f->name);
		return ARG_BAD;
	}
	return ARG_FLAG;
}

/* key=value, unless the part before '=' cannot be a key (a path). */
static bool is_setting(const char *arg)
{
	const char *eq = strchr(arg, '=');

	return eq && eq > arg && eq - arg < 120 &&
	       strspn(arg, "+abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
			   "WXYZ0123456789_.") == (size_t)(eq - arg);
}

int args_next(struct args *a)
{
	const char *arg, *eq;

	if (a->at >= a->argc)
		return ARG_END;
	arg = a->argv[a->at++];
	if (arg[0] == '-' && arg[1])
		return take_flag(a, arg);
	a->value = arg;
	if (!is_setting(arg))
		return ARG_PATH;
	eq = strchr(arg, '=');
	arg += strspn(arg, "+");
	memcpy(a->key, arg, (size_t)(eq - arg));
	a->key[eq - arg] = '\0';
	a->value = eq + 1;
	return ARG_SETTING;
}

int spec_arg(struct pen_spec *s, const struct args *a, int kind)
{
	struct pen_err err = { 0 };
	int rc = 0;

	if (kind == ARG_SETTING)
		rc = pen_spec_set(s, a->key, a->value, &err);
	else if (kind == ARG_PATH)
		rc = pen_spec_add_path(s, a->value, &err);
	return rc ? complain(&err) : -1;
}
