/* Output: messages, numbers, progress, JSON, files. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

static bool muted;

void mute(bool on)
{
	muted = on;
}

int exit_code(int code)
{
	switch (code) {
	case PEN_EINVAL:
		return EXIT_USAGE;
	case PEN_EDATA:
	case PEN_ENOTSUP:
		return EXIT_DATA;
	case PEN_EIO:
	case PEN_ENOTFOUND:
	case PEN_ESTALE:
		return EXIT_IO;
	default:
		return EXIT_FAILED;
	}
}

const char *shown(const char *s)
{
	static char buf[4][16384];
	static unsigned i;
	char *b;

	if (pen__is_plain(s))
		return s;
	b = buf[i++ % 4];
	if (!pen__quote(b, sizeof(buf[0]) - 3, s))
		memcpy(b + strlen(b), "...", 4);
	return b;
}

void print_lines(const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, "\n");
		struct pen_text in = { 0 }, out = { 0 };

		pen__text_put(&in, text, n);
		pen__text_quote(&out, in.p ? in.p : "");
		if (out.p)
			fputs(out.p, stdout);
		if (text[n])
			putchar('\n');
		text += n + !!text[n];
		pen__text_fini(&in);
		pen__text_fini(&out);
	}
}

size_t terminal_columns(void)
{
	const char *set = getenv("COLUMNS");
	struct winsize w = { 0 };

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (set && strtoul(set, NULL, 10))
		return strtoul(set, NULL, 10);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

void print_line(int width, const char *label, const char *fmt, ...)
{
	const size_t at = (size_t)width + (label ? 3 : 0);
	char text[16384];
	size_t lead;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	lead = !label && terminal_columns() ? strspn(text, " ") : 0;
	if (label)
		printf("  %-*s ", width, label);
	else
		printf("%*s", (int)lead, "");
	if (terminal_columns())
		print_wrapped(stdout, text + lead, label ? at : lead, at);
	else
		puts(shown(text));
}

void print_paragraphs(struct pen_text *t, bool apart)
{
	char *p, *end;

	for (p = t->n ? t->p : NULL; p && *p; p = end ? end + 1 : NULL) {
		end = strchr(p, '\n');
		if (end)
			*end = '\0';
		printf("%s  ", apart || p == t->p ? "\n" : "");
		print_wrapped(stdout, p, 2, 2);
	}
	pen__text_fini(t);
}

static struct {
	bool wanted, printed;
	int number; /* of the first error; 0: none */
	char where[4096], msg[8192];
} json;

void json_wanted(void)
{
	json.wanted = true;
}

void json_printed(void)
{
	json.printed = true;
}

static void print_error(int number, const char *where, const char *msg)
{
	if (muted)
		return;
	fprintf(stderr, "penstock: %s%s%s [P%03d]\n", shown(where),
		where[0] ? ": " : "", shown(msg), number);
	if (json.number)
		return;
	json.number = number;
	snprintf(json.where, sizeof(json.where), "%s", where);
	snprintf(json.msg, sizeof(json.msg), "%s", msg);
}

int complain(const struct pen_err *err)
{
	struct pen_err e = { .number = err->number };

	pen__err_code(&e, err->code); /* never [P000] */
	print_error(e.number, err->where, err->msg);
	return exit_code(err->code);
}

int complain_usage(int kind, const char *where, const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_error(kind, where ? where : "", text);
	return EXIT_USAGE;
}

void json_code(struct pen_text *t, int number)
{
	char code[16];

	snprintf(code, sizeof(code), "P%03d", number);
	if (number)
		pen__json_str(t, "code", code);
}

void json_finish(int rc)
{
	struct pen_text t = { 0 };

	if (!rc || !json.wanted || json.printed || muted)
		return;
	if (!json.number) {
		json.number = rc > 128 ? P_INTERRUPTED : P_RUN_FAILED;
		snprintf(json.msg, sizeof(json.msg), "%s",
			 rc > 128 ? "interrupted" : "failed");
	}
	pen__json_open(&t, NULL, '{');
	pen__json_str(&t, "schema", "penstock.error/1");
	pen__json_open(&t, "error", '{');
	json_code(&t, json.number);
	pen__json_str(&t, "where", json.where);
	pen__json_str(&t, "message", json.msg);
	pen__json_int(&t, "exit", (uint64_t)rc);
	pen__json_close(&t, '}');
	pen__json_close(&t, '}');
	(void)text_out(&t, NULL);
}

#define WARNINGS 10 /* printed at most */

static void warn_one(void *arg, const struct pen_err *e)
{
	uint64_t *n = arg;

	if (++*n <= WARNINGS)
		fprintf(stderr, "penstock: %s: %s: %s\n",
			e->code ? "warning" : "note", shown(e->where),
			shown(e->msg));
}

void warn_of(const struct pen_dataset *ds)
{
	uint64_t n = 0;

	pen_dataset_warnings(ds, &n, warn_one);
	if (n > WARNINGS)
		fprintf(stderr,
			"penstock: %s more warnings omitted; `penstock verify` "
			"prints all\n",
			grouped(n - WARNINGS));
}

const char *shape_text(const int64_t *shape, uint32_t ndim)
{
	static char buf[PEN_MAX_DIMS * 21 + 8];
	size_t at = 0;

	if (!ndim)
		return "scalar";
	for (uint32_t i = 0; i < ndim; i++) {
		at += (size_t)snprintf(buf + at, sizeof(buf) - at, "%s",
				       i ? "x" : "");
		at += (size_t)(shape[i] < 0
				       ? snprintf(buf + at, sizeof(buf) - at,
						  "?")
				       : snprintf(buf + at, sizeof(buf) - at,
						  "%" PRId64, shape[i]));
	}
	return buf;
}

void json_field(struct pen_text *j, const struct pen_field *f)
{
	pen__json_str(j, "name", f->name);
	pen__json_str(j, "dtype", pen_dtype_name(f->dtype));
	pen__json_str(j, "shape", shape_text(f->shape, f->ndim));
}

void progress_start(struct progress *p, const char *what, uint64_t total)
{
	*p = (struct progress){ .what = what,
				.total = total,
				.start_ns = pen__now_ns(),
				.tty = isatty(STDERR_FILENO) };
}

void progress_show(struct progress *p, uint64_t done, double bytes)
{
	uint64_t now = p->tty ? pen__now_ns() : 0;
	double s = (double)(now - p->start_ns) / 1e9, rate;

	if (!p->tty || s < 2 || now - p->shown_ns < 200000000)
		return;
	rate = (double)done / s;
	fprintf(stderr, "\r\033[K%s%s", p->title ? shown(p->title) : "",
		p->title ? ": " : "");
	fprintf(stderr, "%s %s", grouped(done), p->what);
	if (p->total)
		fprintf(stderr, " of %s (%.0f %%)", grouped(p->total),
			100.0 * (double)done / (double)p->total);
	fprintf(stderr, ", %s/s", human_count(rate));
	if (bytes > 0)
		fprintf(stderr, ", %s/s", human_bytes(bytes / s));
	if (p->total > done && rate > 0)
		fprintf(stderr, ", %s left",
			human_time((double)(p->total - done) / rate));
	fflush(stderr);
	p->shown_ns = now;
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

static volatile sig_atomic_t caught, below;
static atomic_bool asked;

static void on_signal(int sig)
{
	if (caught) {
		if (below)
			(void)!write(STDERR_FILENO, "\n", 1);
		signal(sig, SIG_DFL);
		raise(sig);
	}
	caught = sig;
	atomic_store(&asked, true);
}

void interrupt_install(void)
{
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_RESTART };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ,
	       SIG_IGN); /* the limit on file sizes becomes a failed write */
}

int interrupted(void)
{
	return caught;
}

int interrupt_asked(void *arg)
{
	(void)arg;
	return atomic_load_explicit(&asked, memory_order_relaxed);
}

void interrupt_below(bool on)
{
	below = on;
}

int text_out(struct pen_text *t, const char *path)
{
	struct pen_err err = { 0 };
	int rc = 0;

	if (path && strcmp(path, "-")) {
		rc = pen__text_save(t, path, &err);
	} else if (t->failed) {
		rc = pen__fail_nomem(&err, "output", t->n);
	} else {
		json_printed();
		/* verbatim for programs, escaped for terminals */
		if (isatty(STDOUT_FILENO) && t->p)
			print_lines(t->p);
		else
			fwrite(t->p, 1, t->n, stdout);
		if (fflush(stdout) || ferror(stdout))
			rc = pen__fail_sys(&err, errno, "standard output",
					   "cannot write the output");
	}
	pen__text_fini(t);
	return rc ? complain(&err) : 0;
}
