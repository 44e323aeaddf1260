/*
 * Turns SIGBUS into a return value. The handler jumps only if the thread is
 * inside pen__guard_run() and the signal comes from a memory access; any other
 * SIGBUS goes to the previous handler, or kills the process as it would have
 * without this one. SIGSEGV is not guarded: it is always a bug.
 */
#include "base/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

/*
 * volatile: written around calls that may leave by siglongjmp, and read by the
 * handler, which the compiler cannot see. initial-exec: in a library loaded
 * late, the handler's first access might otherwise allocate.
 */
static _Thread_local sigjmp_buf *volatile armed
	__attribute__((tls_model("initial-exec")));
static struct sigaction previous;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void pass_on(int sig, siginfo_t *info, void *context)
{
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, info, context);
		return;
	}
	if (previous.sa_handler == SIG_IGN && info->si_code <= 0)
		return; /* sent by kill(); a fault cannot be ignored */
	if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(sig);
		return;
	}
	signal(sig, SIG_DFL);
	/* delivered when the handler returns */
	raise(sig);
}

static void on_bus(int sig, siginfo_t *info, void *context)
{
	sigjmp_buf *to = armed;

	/*
	 * si_code > 0: from the kernel. All except "action optional" (a broken
	 * page found by the scrubber) come from this thread's own access.
	 */
	if (to && info->si_code > 0 && info->si_code != BUS_MCEERR_AO) {
		/*
		 * sigsetjmp does not save the mask, which would be a system
		 * call in every guarded region: the mask that the kernel saved
		 * for the handler is restored here instead.
		 */
		const ucontext_t *uc = context;

		armed = NULL;
		pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, NULL);
		siglongjmp(*to, 1);
	}
	pass_on(sig, info, context);
}

static void install(void)
{
	struct sigaction act = { .sa_sigaction = on_bus,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, NULL, &previous);
	sigaction(SIGBUS, &act, NULL);
}

void pen__guard_install(void)
{
	pthread_once(&once, install);
}

int pen__guard_run(int (*fn)(void *), void *arg, bool *lost)
{
	sigjmp_buf *const outer = armed;
	sigjmp_buf here;
	int ret;

	*lost = false;
	if (sigsetjmp(here, 0)) {
		armed = outer;
		*lost = true;
		return 0;
	}
	armed = &here;
	ret = fn(arg);
	armed = outer;
	return ret;
}

struct copy {
	void *to;
	const void *from;
	size_t n;
};

static int copy(void *arg)
{
	const struct copy *c = arg;

	memcpy(c->to, c->from, c->n);
	return 0;
}

bool pen__guard_copy(void *to, const void *from, size_t n)
{
	struct copy c = { to, from, n };
	bool lost = false;

	if (n)
		pen__guard_run(copy, &c, &lost);
	return !lost;
}
