/*
 * dlio.log, and its copy on the terminal: lines with the wording and number
 * formats of DLIO, which scripts search for. A line is a single write, so that
 * lines of several threads never mix. Control characters are replaced, so that
 * one call is one line.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulate/output.h"

const char *pen__iso_time(double unix_s, char buf[32])
{
	long long us;
	time_t at;
	struct tm tm;
	size_t n;

	buf[0] = '\0';
	if (!(unix_s >= 0 && unix_s < 2e11)) /* year 8307 */
		return buf;
	us = llround(unix_s * 1e6);
	at = (time_t)(us / 1000000);
	if (!localtime_r(&at, &tm))
		return buf;
	n = strftime(buf, 24, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, 32 - n, ".%06u", (unsigned)(us % 1000000));
	return buf;
}

int pen__log_open(struct pen_log *log, const char *path, struct pen_err *err)
{
	log->fd = -1;
	if (!path || log->quiet)
		return 0;
	log->fd = open(path,
		       O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
		       0666);
	if (log->fd < 0)
		return pen__fail_sys(err, errno, path, "cannot write the log");
	return 0;
}

void pen__log_close(struct pen_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	log->fd = -1;
}

/* Writes t->p, one or several lines. Errors are ignored: a full disk must not
 * end a run because of its log. */
static void emit(struct pen_log *log, enum pen_log_level level,
		 struct pen_text *t)
{
	size_t done = 0;

	if (t->failed || !t->n)
		goto out;
	if (log->say)
		log->say(log->arg, level, t->p);
	pen__text_put(t, "\n", 1);
	while (log->fd >= 0 && !t->failed && done < t->n) {
		ssize_t n = write(log->fd, t->p + done, t->n - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
out:
	pen__text_fini(t);
}

static void add_line(struct pen_log *log, enum pen_log_level level,
		     const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void add_line(struct pen_log *log, enum pen_log_level level,
		     const char *fmt, va_list ap)
{
	static const char *const name[] = { "OUTPUT", "WARNING", "ERROR" };
	struct pen_text t = { 0 };
	struct timespec now;
	char buf[32], line[4096];

	if (log->quiet)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	pen__iso_time((double)now.tv_sec + (double)now.tv_nsec / 1e9, buf);
	if (vsnprintf(line, sizeof(line), fmt, ap) < 0)
		return;
	for (char *s = line; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
	pen__text_add(&t, "[%s] %s %s", name[level], buf, line);
	emit(log, level, &t);
}

void pen__log(struct pen_log *log, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_line(log, PEN_LOG_OUTPUT, fmt, ap);
	va_end(ap);
}

void pen__log_warn(struct pen_log *log, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_line(log, PEN_LOG_WARNING, fmt, ap);
	va_end(ap);
}

static void metric(struct pen_log *log, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void metric(struct pen_log *log, const char *fmt, ...)
{
	struct pen_text t = { 0 };
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	pen__text_add(&t, "%s", line);
	emit(log, PEN_LOG_OUTPUT, &t);
}

static void metric_mean(struct pen_log *log, const char *label, int digits,
			const struct pen_mean *m)
{
	metric(log, "[METRIC] %s: %.*f (%.*f)", label, digits, m->mean, digits,
	       m->stdev);
}

void pen__log_metrics(struct pen_log *log, const struct pen_record *r,
		      const struct pen_figures *f)
{
	static const char rule[] =
		"[METRIC] "
		"==========================================================";

	if (log->quiet)
		return;
	metric(log, "[OUTPUT] Averaged metric over all steps/epochs");
	metric(log, "%s", rule);
	metric(log, "[METRIC] Number of Simulated Accelerators: %u ", r->world);
	if (r->c->workflow.train) {
		metric_mean(log, "Training Accelerator Utilization [AU] (%)", 4,
			    &f->au_all);
		metric_mean(log, "Training Throughput (samples/second)", 4,
			    &f->throughput_all);
		metric_mean(log, "Training I/O Throughput (MB/second)", 4,
			    &f->record_io_all);
		metric_mean(log, "Training Bytes Read (MB/second)", 4,
			    &f->read_io_all);
		metric(log, "[METRIC] train_au_meet_expectation: %s",
		       f->au_met ? "success" : "fail");
	}
	if (f->nsaves) {
		metric_mean(log, "Checkpoint save duration (seconds)", 4,
			    &f->save_time);
		metric_mean(log, "Checkpoint save I/O Throughput (GB/second)",
			    4, &f->save_rate);
	}
	if (f->nloads) {
		metric_mean(log, "Checkpoint load duration (seconds)", 4,
			    &f->load_time);
		metric_mean(log, "Checkpoint load I/O Throughput (GB/second)",
			    4, &f->load_rate);
	}
	if (r->c->workflow.evaluation) {
		metric_mean(log, "Eval Accelerator Utilization [AU] (%)", 4,
			    &f->eval_au_all);
		metric_mean(log, "Eval Throughput (samples/second)", 6,
			    &f->eval_throughput_all);
		metric_mean(log, "Eval Throughput (MB/second)", 6,
			    &f->eval_record_io_all);
		metric_mean(log, "Eval Bytes Read (MB/second)", 6,
			    &f->eval_read_io_all);
		metric(log, "[METRIC] eval_au_meet_expectation: %s",
		       f->eval_au_met ? "success" : "fail");
	}
	metric(log, "%s", rule);
}
