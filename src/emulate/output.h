/* Files and lines a run leaves behind. */
#ifndef PEN_EMULATE_OUTPUT_H
#define PEN_EMULATE_OUTPUT_H

#include "emulate/metrics.h"
#include "emulate/system.h"

/*
 * Where lines go: to the log file (rank 0) with DLIO's prefix and time, and to
 * say(), which the command points at the terminal. Lines of DLIO's own kind
 * have its wording, because scripts look for it.
 */
enum pen_log_level { PEN_LOG_OUTPUT, PEN_LOG_WARNING, PEN_LOG_ERROR };
struct pen_log {
	void (*say)(void *arg, enum pen_log_level, const char *line);
	void *arg;
	int fd;	    /* of the log file, or -1 */
	bool quiet; /* not rank 0 */
};
int pen__log_open(struct pen_log *, const char *path, struct pen_err *err);
void pen__log_close(struct pen_log *);
/* One line with the time in front, as "2026-11-15T20:49:06.949188 Starting". */
void pen__log(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__log_warn(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The [METRIC] block at the end. */
void pen__log_metrics(struct pen_log *, const struct pen_record *,
		      const struct pen_figures *);

/* "2026-11-15T20:49:06.949188", local time, into buf */
const char *pen__iso_time(double unix_s, char buf[32]);

/* {rank}_output.json and {rank}_per_epoch_stats.json for every accelerator of
 * this process, summary.json on rank 0. Collective (hosts are gathered). */
int pen__output_dlio(const struct pen_record *, const struct pen_figures *,
		     const char *dir, struct pen_err *err);

/* Everything, versioned: schema "penstock.result/1". Collective; rank 0
 * writes. watch may be NULL. */
int pen__output_result(const struct pen_record *, const struct pen_figures *,
		       const struct pen_settings *,
		       const struct pen_text *watch, const char *path,
		       struct pen_err *err);

/* Chrome trace (Perfetto) of this process: trace-RANK.json */
int pen__output_trace(const struct pen_record *, const char *path,
		      struct pen_err *err);

#endif
