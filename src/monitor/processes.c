/* Attribution: the energy of a device since the last round is divided into idle energy, the processes that used it, and
 * an unattributed part; the parts add up to the total.
 *
 * Processors: by time.  Idle and stolen ticks are idle energy, and each process gets a share by its CPU time.  GPUs:
 * the driver reports the utilization by process every few seconds.  Idle power is the power measured while nothing used
 * the GPU; energy above it is shared by utilization.  Until the GPU has been idle once, the energy is divided by time,
 * as for processors.
 *
 * The largest processes and cgroups have accounts, which become series; the energy of all others is added to "other",
 * as is an account that ends: no counter ever decreases. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/xalloc.h"
#include "monitor/parts.h"
#include "port/proc_tree.h"
#include "port/thread.h"
#include "sampler/sampler.h"
#include "sensors/system/host_info.h"

/* Reading every process costs the kernel some 10 us each: a round may use at most this share of a core. */
#define ROUND_MIN (5 * NS_PER_S)
#define ROUND_MAX (30 * NS_PER_S)
enum { ROUND_COSTS = 4000 };
/* Share of a round's energy below which no account is created. */
#define SHARE_MIN 0.001
/* The driver's list of processes is restarted before it is full. */
enum { WATCHED_MAX = SENSOR_PROCESSES_MAX * 3 / 4, CGROUP_MAX = 256 };

struct account {
    int pid;               /* of a process ... */
    uint64_t started;      /* ... and its start time; 0: unknown */
    char name[CGROUP_MAX]; /* of a cgroup */
    struct text labels;
    double joules, recent; /* total; and exponentially decayed, halved per round */
};

struct accounts {
    struct account *items;
    size_t count;
    double other;
};

/* Energy of a device: active and idle add up to the total; unattributed is a part of active. */
enum part { PART_ACTIVE, PART_IDLE, PART_UNATTRIBUTED, PARTS };

/* Idle power is the median of as many rounds. */
enum { IDLE_ROUNDS = 3 };

/* One device, or the processors together. */
struct shares {
    struct text labels;
    bool is_used, has_round; /* in this session */
    enum method method;
    double parts[PARTS]; /* J */
    struct accounts processes, cgroups;
    /* GPUs only. */
    double idle_w; /* UNKNOWN until it was idle once */
    double idle_rounds[IDLE_ROUNDS];
    unsigned idle_count;
    nanos covered; /* time of the attributed energy: not that of rounds, if readings are late */
    double watched_s;
    struct process_use seen[SENSOR_PROCESSES_MAX];
    size_t seen_count;
};

struct processes {
    size_t max;
    nanos next, rewatch;
    struct shares cpu;
    struct shares **gpus;
    size_t gpu_count, gpu_capacity;
    struct cpu_times cpus;
    struct proc_time *times;
    size_t time_count;
    bool is_primed;
};

/* ---- accounts ---- */

struct account_key {
    int pid;
    uint64_t started;
    const char *name; /* of a cgroup; NULL: a process */
};

static struct account *find_account(struct accounts *accounts, const struct account_key *key)
{
    for (size_t i = 0; i < accounts->count; i++) {
        struct account *account = &accounts->items[i];
        if (key->name ? str_equal(account->name, key->name)
                      : account->pid == key->pid && account->started == key->started)
            return account;
    }
    return NULL;
}

static void end_account(struct accounts *accounts, struct account *account)
{
    accounts->other += account->joules;
    text_release(&account->labels);
    *account = accounts->items[--accounts->count];
}

/* A free account, or one reused from an entry that uses much less; NULL if there is none. */
static struct account *new_account(struct accounts *accounts, size_t max, double joules)
{
    if (!accounts->items)
        accounts->items = xcalloc(max, sizeof *accounts->items);
    if (accounts->count == max) {
        struct account *min = &accounts->items[0];
        for (size_t i = 1; i < accounts->count; i++)
            if (accounts->items[i].recent < min->recent)
                min = &accounts->items[i];
        if (min->recent > joules / 2)
            return NULL;
        end_account(accounts, min);
    }
    struct account *added = &accounts->items[accounts->count++];
    *added = (struct account){0};
    return added;
}

/* A container id: 64 hexadecimal digits in the name of its cgroup. */
static void find_container(const char *cgroup, char id[65])
{
    size_t run = 0;
    id[0] = '\0';
    for (const char *at = cgroup; *at; at++) {
        run = isxdigit((unsigned char)*at) ? run + 1 : 0;
        if (run == 64 && !isxdigit((unsigned char)at[1]))
            str_format(id, 65, "%.64s", at - 63);
    }
}

static void label_account(struct account *account, const struct account_key *key, const char *comm,
                          const char *cgroup)
{
    char pid[16], container[65];
    find_container(cgroup, container);
    account->pid = key->pid;
    account->started = key->started;
    if (key->name) {
        chars_copy(account->name, key->name);
        exposition_label(&account->labels, "cgroup", key->name);
    } else {
        chars_format(pid, "%d", key->pid);
        exposition_label(&account->labels, "pid", pid);
        exposition_label(&account->labels, "comm", comm);
    }
    if (container[0])
        exposition_label(&account->labels, "container_id", container);
}

/* Adds joules to the accounts of a process and of its cgroup. */
static void credit(struct processes *processes, struct shares *shares, int pid, uint64_t started,
                   const char *comm, double joules, double whole)
{
    char cgroup[CGROUP_MAX], name[32];
    proc_cgroup(pid, cgroup, sizeof cgroup);
    const struct account_key keys[] = {{pid, started, NULL}, {0, 0, cgroup}};
    struct accounts *tables[] = {&shares->processes, &shares->cgroups};
    for (int i = 0; i < 2; i++) {
        struct account *account = find_account(tables[i], &keys[i]);
        bool is_large = joules > SHARE_MIN * whole && (i == 0 || cgroup[0]);
        if (!account && is_large && (account = new_account(tables[i], processes->max, joules))) {
            chars_copy(name, comm);
            if (!name[0])
                proc_name(pid, name, sizeof name);
            label_account(account, &keys[i], name, cgroup);
        }
        if (!account) {
            tables[i]->other += joules;
            continue;
        }
        account->joules += joules;
        account->recent += joules;
    }
}

static void age_accounts(struct accounts *accounts)
{
    for (size_t i = 0; i < accounts->count; i++)
        accounts->items[i].recent /= 2;
}

static void release_accounts(struct accounts *accounts)
{
    for (size_t i = 0; i < accounts->count; i++)
        text_release(&accounts->items[i].labels);
    free(accounts->items);
}

/* ---- processors ---- */

/* Whether the domain measures processors or their memory, and no better domain measures the same. */
static bool is_processor(const struct domain *domains, size_t count, const struct domain *self)
{
    if (self->kind != DOMAIN_CPU || !self->is_up ||
        (self->scope != SCOPE_PACKAGE && self->scope != SCOPE_DRAM &&
         self->scope != SCOPE_GRACE_CPU))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct domain *other = &domains[i];
        if (other == self || !(other->is_up || other->is_pending) || other->kind != DOMAIN_CPU ||
            other->scope != self->scope)
            continue;
        bool same = other->location == self->location || other->location < 0 || self->location < 0;
        if (same &&
            (other->method < self->method || (other->method == self->method && other < self)))
            return false;
    }
    return true;
}

/* The energy of the processors since the last round. */
static double take_cpu_joules(struct shares *cpu, struct domain *domains, size_t count)
{
    double joules = 0;
    cpu->is_used = false;
    cpu->method = METHOD_NONE;
    for (size_t i = 0; i < count; i++) {
        if (!is_processor(domains, count, &domains[i]))
            continue;
        joules += domains[i].joules - domains[i].attributed;
        cpu->is_used = true;
        cpu->method = domains[i].method > cpu->method ? domains[i].method : cpu->method;
    }
    for (size_t i = 0; i < count; i++)
        if (domains[i].kind == DOMAIN_CPU)
            domains[i].attributed = domains[i].joules;
    return joules;
}

/* Ticks since the previous round; of a new process, all of them. */
static double own_ticks(const struct processes *processes, const struct proc_time *now)
{
    const struct proc_time *before =
        proc_time_find(processes->times, processes->time_count, now->pid, now->started);
    return (double)now->ticks - (before ? (double)before->ticks : 0);
}

static void split_cpu(struct processes *processes, const struct cpu_times *cpus,
                      const struct proc_time *times, size_t count, double joules)
{
    struct shares *cpu = &processes->cpu;
    double all = cpu_ticks_between(&processes->cpus, cpus);
    double busy = (double)cpus->busy - (double)processes->cpus.busy, seen = 0;
    if (all <= 0 || busy < 0 || busy > all) { /* a CPU went offline, or no tick has passed */
        cpu->parts[PART_ACTIVE] += joules;
        cpu->parts[PART_UNATTRIBUTED] += joules;
        return;
    }
    for (size_t i = 0; i < count; i++)
        seen += own_ticks(processes, &times[i]);
    double scale = seen > busy ? busy / seen : 1; /* ticks are sampled and rounded */
    cpu->parts[PART_IDLE] += joules * (1 - busy / all);
    cpu->parts[PART_ACTIVE] += joules * busy / all;
    cpu->parts[PART_UNATTRIBUTED] += joules * (busy - seen * scale) / all;
    for (size_t i = 0; i < count; i++) {
        double ticks = own_ticks(processes, &times[i]);
        if (ticks > 0)
            credit(processes, cpu, times[i].pid, times[i].started, "", joules * ticks * scale / all,
                   joules);
    }
}

static void end_gone(struct accounts *accounts, const struct proc_time *times, size_t count)
{
    for (size_t i = accounts->count; i-- > 0;) {
        struct account *account = &accounts->items[i];
        if (!proc_time_find(times, count, account->pid, account->started))
            end_account(accounts, account);
    }
}

static void update_cpu(struct processes *processes, struct state *state)
{
    struct cpu_times cpus;
    struct proc_time *times;
    size_t domain_count, count = proc_times(&times);
    struct domain *domains = state_domains(state, &domain_count);
    bool readable = proc_stat_now(&cpus);
    if (!readable || !processes->is_primed) {
        /* Energy before the first round, or while /proc could not be read, is unattributed. */
        double joules = take_cpu_joules(&processes->cpu, domains, domain_count);
        processes->cpu.parts[PART_ACTIVE] += joules;
        processes->cpu.parts[PART_UNATTRIBUTED] += joules;
    } else {
        double joules = take_cpu_joules(&processes->cpu, domains, domain_count);
        age_accounts(&processes->cpu.processes);
        age_accounts(&processes->cpu.cgroups);
        split_cpu(processes, &cpus, times, count, joules);
        end_gone(&processes->cpu.processes, times, count);
    }
    free(processes->times);
    processes->times = times;
    processes->time_count = count;
    processes->is_primed = readable;
    if (readable)
        processes->cpus = cpus;
}

/* ---- GPUs ---- */

static struct shares *find_gpu(struct processes *processes, const struct domain *domain)
{
    for (size_t i = 0; i < processes->gpu_count; i++)
        if (str_equal(text_get(&processes->gpus[i]->labels), text_get(&domain->brief)))
            return processes->gpus[i];
    XGROW(processes->gpus, processes->gpu_count, processes->gpu_capacity);
    struct shares *added = XNEW(added);
    added->idle_w = UNKNOWN;
    text_add(&added->labels, text_get(&domain->brief));
    return processes->gpus[processes->gpu_count++] = added;
}

/* Utilization by a process since the previous round, times time. */
static double busy_since(const struct shares *gpu, const struct process_use *use)
{
    double before = 0;
    for (size_t i = 0; i < gpu->seen_count; i++)
        if (gpu->seen[i].pid == use->pid)
            before = gpu->seen[i].busy_s;
    double busy = use->busy_s - before;
    return is_known(busy) && busy > 0 ? busy : 0;
}

/* Idle power after another idle round of this power.  It may be too high: power changes before the utilization does that
 * was read for the round.  A process that starts then would have its energy counted as idle until it ends. */
static double idle_power(struct shares *gpu, double watts)
{
    double sorted[IDLE_ROUNDS];
    gpu->idle_rounds[gpu->idle_count++ % IDLE_ROUNDS] = watts;
    unsigned n = gpu->idle_count < IDLE_ROUNDS ? gpu->idle_count : IDLE_ROUNDS;
    memcpy(sorted, gpu->idle_rounds, sizeof sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    return sorted[(n - 1) / 2];
}

static void split_gpu(struct processes *processes, struct shares *gpu, const struct domain *domain,
                      const struct process_use *uses, size_t count, double watched_s)
{
    double joules = domain->joules - domain->attributed;
    double length_s = seconds(domain->covered - gpu->covered);
    double busy = 0;
    for (size_t i = 0; i < count; i++)
        busy += busy_since(gpu, &uses[i]);
    double share = watched_s > 0 ? busy / watched_s : 0;
    share = share < 1 ? share : 1;
    double used =
        is_known(domain->utilization) && domain->utilization > share ? domain->utilization : share;
    if (used == 0)
        gpu->idle_w = idle_power(gpu, joules / length_s);
    double idle = is_known(gpu->idle_w) ? gpu->idle_w * length_s : joules * (1 - used);
    idle = idle < joules ? idle : joules;
    double active = joules - idle;
    /* With idle power known, all energy above it is shared by utilization; otherwise only the utilized time. */
    double given = share == 0 ? 0 : is_known(gpu->idle_w) ? active : active * share / used;
    gpu->parts[PART_IDLE] += idle;
    gpu->parts[PART_ACTIVE] += active;
    gpu->parts[PART_UNATTRIBUTED] += active - given;
    for (size_t i = 0; i < count && busy > 0; i++) {
        double own = busy_since(gpu, &uses[i]);
        if (own > 0)
            credit(processes, gpu, uses[i].pid, 0, uses[i].name, given * own / busy, joules);
    }
}

/* Ends the accounts of processes that the driver no longer lists. */
static void end_unseen(struct shares *gpu, const struct process_use *uses, size_t count)
{
    for (size_t i = gpu->processes.count; i-- > 0;) {
        bool found = false;
        for (size_t u = 0; u < count; u++)
            found |= uses[u].pid == gpu->processes.items[i].pid;
        if (!found && gpu->processes.items[i].recent == 0)
            end_account(&gpu->processes, &gpu->processes.items[i]);
    }
}

static void update_gpu(struct processes *processes, struct state *state, struct domain *domain,
                       nanos now)
{
    struct process_use uses[SENSOR_PROCESSES_MAX];
    struct shares *gpu = find_gpu(processes, domain);
    size_t count;
    double watched_s;
    if (sampler_processes(state_sampler(state), domain->source, uses, &count, &watched_s))
        return;
    gpu->is_used = true;
    gpu->method = domain->method;
    if (gpu->has_round && (watched_s == gpu->watched_s || domain->covered <= gpu->covered))
        return; /* no new reading */
    age_accounts(&gpu->processes);
    age_accounts(&gpu->cgroups);
    if (gpu->has_round) {
        split_gpu(processes, gpu, domain, uses, count, watched_s - gpu->watched_s);
    } else {
        gpu->parts[PART_ACTIVE] += domain->joules - domain->attributed;
        gpu->parts[PART_UNATTRIBUTED] += domain->joules - domain->attributed;
    }
    end_unseen(gpu, uses, count);
    domain->attributed = domain->joules;
    gpu->has_round = true;
    gpu->covered = domain->covered;
    gpu->watched_s = watched_s;
    memcpy(gpu->seen, uses, count * sizeof *uses);
    gpu->seen_count = count;
    if (count >= WATCHED_MAX)
        processes->rewatch = now;
}

/* A driver lists processes since the start of the watch. */
static void watch(struct processes *processes, struct state *state)
{
    sampler_watch_begin(state_sampler(state));
    for (size_t i = 0; i < processes->gpu_count; i++) {
        processes->gpus[i]->watched_s = 0;
        processes->gpus[i]->seen_count = 0;
    }
    processes->rewatch = 0;
}

/* ---- rounds ---- */

struct processes *processes_new(size_t max)
{
    struct processes *processes = XNEW(processes);
    processes->max = max;
    return processes;
}

static void release_shares(struct shares *shares)
{
    text_release(&shares->labels);
    release_accounts(&shares->processes);
    release_accounts(&shares->cgroups);
}

void processes_free(struct processes *processes)
{
    if (!processes)
        return;
    release_shares(&processes->cpu);
    for (size_t i = 0; i < processes->gpu_count; i++) {
        release_shares(processes->gpus[i]);
        free(processes->gpus[i]);
    }
    free(processes->gpus);
    free(processes->times);
    free(processes);
}

void processes_attach(struct processes *processes, struct state *state)
{
    for (size_t i = 0; i < processes->gpu_count; i++)
        processes->gpus[i]->has_round = false;
    watch(processes, state);
}

void processes_update(struct processes *processes, struct state *state, nanos now)
{
    size_t count;
    if (now < processes->next)
        return;
    nanos before = thread_cpu();
    update_cpu(processes, state);
    processes->cpu.is_used &= processes->is_primed;
    struct domain *domains = state_domains(state, &count);
    for (size_t i = 0; i < processes->gpu_count; i++)
        processes->gpus[i]->is_used = false;
    for (size_t i = 0; i < count; i++)
        if (domains[i].kind == DOMAIN_GPU && domains[i].scope == SCOPE_GPU && domains[i].is_up)
            update_gpu(processes, state, &domains[i], now);
    if (processes->rewatch)
        watch(processes, state);
    nanos cost = (thread_cpu() - before) * ROUND_COSTS;
    cost = cost < ROUND_MAX ? cost : ROUND_MAX;
    processes->next = now + (cost > ROUND_MIN ? cost : ROUND_MIN);
}

/* ---- a scrape ---- */

static void render_parts(const struct processes *processes, struct exposition *to)
{
    for (int part = 0; part < PARTS; part++) {
        family_begin(to, (enum family)(FAMILY_CPU_ACTIVE + part));
        if (processes->cpu.is_used)
            exposition_sample(to, "", "", processes->cpu.parts[part]);
    }
    for (int part = 0; part < PARTS; part++) {
        family_begin(to, (enum family)(FAMILY_GPU_ACTIVE + part));
        for (size_t i = 0; i < processes->gpu_count; i++)
            if (processes->gpus[i]->is_used)
                exposition_sample(to, text_get(&processes->gpus[i]->labels), "",
                                  processes->gpus[i]->parts[part]);
    }
}

static const struct accounts *table_of(const struct shares *shares, bool of_cgroups)
{
    return of_cgroups ? &shares->cgroups : &shares->processes;
}

static void render_accounts(const struct shares *shares, bool of_cgroups, struct exposition *to)
{
    const struct accounts *accounts = table_of(shares, of_cgroups);
    for (size_t i = 0; shares->is_used && i < accounts->count; i++)
        exposition_sample(to, text_get(&accounts->items[i].labels), text_get(&shares->labels),
                          accounts->items[i].joules);
}

static void render_other(const struct shares *shares, bool of_cgroups, struct exposition *to)
{
    if (shares->is_used)
        exposition_sample(to, text_get(&shares->labels), "", table_of(shares, of_cgroups)->other);
}

static void render_tables(const struct processes *processes, bool of_cgroups, struct exposition *to)
{
    enum family first = of_cgroups ? FAMILY_CGROUP_CPU : FAMILY_PROCESS_CPU;
    family_begin(to, first);
    render_accounts(&processes->cpu, of_cgroups, to);
    family_begin(to, first + 1);
    render_other(&processes->cpu, of_cgroups, to);
    family_begin(to, first + 2);
    for (size_t i = 0; i < processes->gpu_count; i++)
        render_accounts(processes->gpus[i], of_cgroups, to);
    family_begin(to, first + 3);
    for (size_t i = 0; i < processes->gpu_count; i++)
        render_other(processes->gpus[i], of_cgroups, to);
}

static void render_info(const struct shares *shares, const char *of, const char *by,
                        struct exposition *to)
{
    struct text labels = {0};
    if (!shares->is_used)
        return;
    exposition_label(&labels, "of", of);
    exposition_label(&labels, "by", by);
    exposition_label(&labels, "method", method_name(shares->method));
    exposition_sample(to, text_get(&labels), text_get(&shares->labels), 1);
    text_release(&labels);
}

void processes_render(const struct processes *processes, struct exposition *to)
{
    render_parts(processes, to);
    render_tables(processes, false, to);
    render_tables(processes, true, to);
    family_begin(to, FAMILY_ATTRIBUTION_INFO);
    render_info(&processes->cpu, "cpu", "cpu_time", to);
    for (size_t i = 0; i < processes->gpu_count; i++)
        render_info(processes->gpus[i], "gpu", "utilization", to);
}
