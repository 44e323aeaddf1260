/*
 * penstock doctor: checks what affects loading on this machine and advises what
 * to change and why. It changes nothing itself.
 */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"

static const char *const marks[] = { "ok", "note", "better", "broken" };

bool doctor_read(const char *path, char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, cap - 1);
	close(fd);
	if (n < 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

bool doctor_number(const char *path, uint64_t *out)
{
	char text[64], *end;

	if (!doctor_read(path, text, sizeof(text)))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && end != text;
}

static char *text_of(struct doctor *d, const char *fmt, va_list ap)
{
	char text[1024], *out;
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	if (n < 0)
		return NULL;
	if ((size_t)n >= sizeof(text))
		n = sizeof(text) - 1;
	out = pen__alloc((size_t)n + 1, 1);
	if (!out) {
		d->failed = true;
		return NULL;
	}
	memcpy(out, text, (size_t)n);
	out[n] = '\0';
	return out;
}

void doctor_say(struct doctor *d, const char *part, enum verdict verdict,
		const char *fmt, ...)
{
	struct finding *f;
	va_list ap;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 32;

		f = pen__realloc(d->finding, cap, sizeof(*f));
		if (!f) {
			d->failed = true;
			return;
		}
		d->finding = f;
		d->cap = cap;
	}
	f = &d->finding[d->n++];
	*f = (struct finding){ .part = part, .verdict = verdict };
	va_start(ap, fmt);
	f->is = text_of(d, fmt, ap);
	va_end(ap);
}

void doctor_because(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	if (d->failed || !d->n)
		return;
	va_start(ap, fmt);
	d->finding[d->n - 1].why = text_of(d, fmt, ap);
	va_end(ap);
}

void doctor_advise(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	if (d->failed || !d->n)
		return;
	va_start(ap, fmt);
	d->finding[d->n - 1].change = text_of(d, fmt, ap);
	va_end(ap);
}

static void doctor_fini(struct doctor *d)
{
	for (size_t i = 0; i < d->n; i++) {
		pen__free(d->finding[i].is);
		pen__free(d->finding[i].why);
		pen__free(d->finding[i].change);
	}
	pen__free(d->finding);
}

static size_t count(const struct doctor *d, enum verdict v)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += d->finding[i].verdict == v;
	return n;
}

static void print_text(const struct doctor *d)
{
	size_t wide = 0, better = count(d, DOCTOR_BETTER);

	for (size_t i = 0; i < d->n; i++)
		if (strlen(d->finding[i].part) > wide)
			wide = strlen(d->finding[i].part);
	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];
		int at = printf("%-7s %-*s  ", marks[f->verdict], (int)wide,
				f->part);

		print_wrapped(stdout, f->is ? f->is : "unknown", (size_t)at,
			      (size_t)at);
		if (f->why) {
			printf("%*s", at, "");
			print_wrapped(stdout, f->why, (size_t)at, (size_t)at);
		}
		if (f->change) {
			printf("%*s-> ", at, "");
			print_wrapped(stdout, f->change, (size_t)at + 3,
				      (size_t)at + 3);
		}
	}
	if (count(d, DOCTOR_BROKEN))
		printf("\nSomething does not work; see the lines marked "
		       "broken.\n");
	else if (better)
		printf("\nEverything works; %s could be improved.\n",
		       counted(better, "thing"));
	else
		printf("\nEverything is fine.\n");
}

static int print_json(const struct doctor *d, const char *path)
{
	struct pen_text t = { 0 };

	pen__json_open(&t, NULL, '{');
	pen__json_str(&t, "schema", "penstock.doctor/1");
	pen__json_open(&t, "findings", '[');
	for (size_t i = 0; i < d->n; i++) {
		const struct finding *f = &d->finding[i];

		pen__json_open(&t, NULL, '{');
		pen__json_str(&t, "part", f->part);
		pen__json_str(&t, "verdict", marks[f->verdict]);
		pen__json_str(&t, "is", f->is ? f->is : "unknown");
		if (f->why)
			pen__json_str(&t, "why", f->why);
		if (f->change)
			pen__json_str(&t, "change", f->change);
		pen__json_close(&t, '}');
	}
	pen__json_close(&t, ']');
	pen__json_close(&t, '}');
	pen__text_add(&t, "\n");
	return text_out(&t, path);
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_doctor, .argc = argc, .argv = argv };
	struct pen_err err = { 0 };
	struct doctor d = { 0 };
	const char *json = NULL;
	bool any = false;
	int kind, rc = 0;

	doctor_machine(&d);
	doctor_software(&d);
	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_PATH) {
			doctor_path(&d, a.value);
			doctor_cached(&d, a.value);
			any = true;
		} else if (kind == ARG_FLAG) {
			json = a.value ? a.value : "-";
		} else {
			rc = kind == ARG_BAD
				     ? EXIT_USAGE
				     : complain_usage(
					       P_UNKNOWN_NAME, "doctor",
					       "takes no settings, found '%s='",
					       a.key);
			break;
		}
	}
	if (!rc && !any)
		doctor_path(&d, ".");
	if (!rc && d.failed) {
		pen__fail_nomem(&err, "doctor", 0);
		rc = complain(&err);
	} else if (!rc && json) {
		rc = print_json(&d, json);
	} else if (!rc) {
		print_text(&d);
	}
	if (!rc && count(&d, DOCTOR_BROKEN))
		rc = EXIT_FAILED;
	doctor_fini(&d);
	return rc;
}

static const struct flag flags[] = {
	{ "--json", "[=FILE]", "print (or write) the result as JSON" },
	{ NULL, NULL, NULL },
};

static const char *const examples[] = {
	"penstock doctor",
	"checks this machine and the current directory",
	"penstock doctor /data",
	"also checks the file system and device that hold /data",
	NULL,
};

const struct command pen__cmd_doctor = {
	.name = "doctor",
	.args = "[PATH...]",
	.summary = "check this machine for what slows loading down",
	.about = "Checks CPU, memory, limits, kernel, io_uring and MPI, and "
		 "for every PATH the file system, device and page cache. "
		 "Advises what to change and why, but changes nothing. The "
		 "exit code is 1 if something required does not work.",
	.flags = flags,
	.examples = examples,
	.run = run,
};
