/* See emulate.h. */
#include "cli/emulate.h"

#include <sys/resource.h>

/* Every accelerator adds reader threads, and every thread keeps files open. */
static void allow_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &l);
}

int emulation_init(struct emulation *e)
{
	struct pen_err err = { 0 };

	allow_files();
	*e = (struct emulation){ 0 };
	pen__settings_init(&e->set);
	if (pen__comm_open(&e->comm, &err))
		return complain(&err);
	mute(e->comm->rank != 0);
	return -1;
}

void emulation_close(struct emulation *e)
{
	pen__config_fini(&e->c);
	pen__settings_fini(&e->set);
	pen__comm_close(e->comm);
}

int emulation_arg(struct emulation *e, const struct args *a, int kind)
{
	return settings_arg(&e->set, &e->name, a, kind);
}

unsigned emulation_world(const struct emulation *e)
{
	unsigned n = e->c.accelerators ? (unsigned)e->c.accelerators : 1;

	return n * (unsigned)e->comm->size;
}

int emulation_open(struct emulation *e, const char *command)
{
	struct pen_err err = { 0 };
	int rc;

	if (!e->name && !e->set.workload)
		return complain_usage(
			P_MISSING_SETTING, command,
			"no workload given; `penstock workloads` lists them");
	rc = pen__settings_load(&e->set, e->name, &err);
	if (!rc)
		rc = pen__config_settle(&e->c, &e->set, &err);
	rc = pen__comm_agree(e->comm, rc, &err);
	if (rc)
		return complain(&err);
	if (e->comm->rank == 0) /* all ranks have the same notes */
		print_notes(&e->set);
	return -1;
}

int emulation_query(const struct emulation *e)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (e->comm->rank)
		return EXIT_OK;
	if (pen__config_query(&e->c, e->c.workflow.query, &t, &err)) {
		pen__text_fini(&t);
		return complain(&err);
	}
	pen__text_add(&t, "\n");
	return text_out(&t, NULL);
}
