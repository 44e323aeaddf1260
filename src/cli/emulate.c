/* See emulate.h. */
#include "cli/emulate.h"

#include <string.h>

#include "base/mem.h"

void emulation_init(struct emulation *e)
{
	*e = (struct emulation){ 0 };
	pen__settings_init(&e->set);
}

void emulation_close(struct emulation *e)
{
	pen__config_fini(&e->c);
	pen__settings_fini(&e->set);
	pen__comm_close(e->comm);
}

int emulation_flag(struct emulation *e, const struct args *a)
{
	if (!strcmp(a->key, "--lenient")) {
		e->set.lenient = true;
		return -1;
	}
	pen__free(e->set.config_dir);
	e->set.config_dir = pen__strdup(a->value);
	return e->set.config_dir ? -1 : EXIT_FAILED;
}

int emulation_arg(struct emulation *e, const struct args *a, int kind)
{
	struct pen_err err = { 0 };

	if (kind == ARG_SETTING) {
		const char *raw = a->argv[a->at - 1];

		if (!pen__settings_arg(&e->set, raw, &err))
			return -1;
		return complain(&err);
	}
	if (e->name)
		return complain_usage("one workload, not '%s' as well",
				      a->value);
	e->name = a->value;
	return -1;
}

unsigned emulation_world(const struct emulation *e)
{
	unsigned n = e->c.accelerators ? (unsigned)e->c.accelerators : 1;

	return n * (unsigned)e->comm->size;
}

int emulation_failed(const struct emulation *e, const struct pen_err *err)
{
	if (!e->comm || e->comm->rank == 0)
		return complain(err);
	return exit_code(err->code);
}

/* Every rank reads the same and finds the same; one of them says it. */
static void print_notes(const struct emulation *e)
{
	const char *p = e->set.notes.p;

	while (p && *p && e->comm->rank == 0) {
		size_t n = strcspn(p, "\n");

		fprintf(stderr, "penstock: note: %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

int emulation_open(struct emulation *e, const char *command)
{
	struct pen_err err = { 0 };
	int rc;

	if (!e->name && !e->set.workload)
		return complain_usage("%s: which workload? `penstock "
				      "workloads` lists them",
				      command);
	rc = pen__comm_open(&e->comm, &err);
	if (rc)
		return complain(&err);
	rc = pen__settings_load(&e->set, e->name, &err);
	if (!rc)
		rc = pen__config_settle(&e->c, &e->set, &err);
	rc = pen__comm_agree(e->comm, rc, &err);
	if (rc)
		return emulation_failed(e, &err);
	print_notes(e);
	return -1;
}

int emulation_query(const struct emulation *e)
{
	struct pen_text t = { 0 };
	struct pen_err err = { 0 };

	if (pen__config_query(&e->c, e->c.workflow.query, &t, &err))
		return complain(&err);
	pen__text_add(&t, "\n");
	if (e->comm->rank)
		return EXIT_OK;
	return text_out(&t, NULL);
}
