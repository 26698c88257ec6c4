#include "base/bounded_calls.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/core.h>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::function<void()> run;
  Deadline deadline;
  bool done = false;
  bool given_up = false;          // its caller has stopped waiting
  std::condition_variable ended;  // wakes only this job's caller: others would delay the next job
};

}  // namespace

// The state that a BoundedCalls shares with its threads, which may outlive it.
struct BoundedCalls::State {
  std::string what;
  unsigned threads_max = 1;
  std::mutex mutex;
  std::condition_variable wake;     // a job is queued, or ending
  std::condition_variable changed;  // for the destructor: a job is done, or a thread has ended
  std::deque<std::shared_ptr<Job>> jobs;
  std::vector<std::shared_ptr<Job>> running;
  unsigned threads = 0;
  unsigned idle = 0;
  bool ending = false;

  bool all_hang(Deadline now) const {
    return running.size() >= threads_max &&
           std::all_of(running.begin(), running.end(), [now](const auto& job) { return job->deadline <= now; });
  }
  bool any_in_time(Deadline now) const {
    return std::any_of(running.begin(), running.end(), [now](const auto& job) { return job->deadline > now; });
  }

  std::shared_ptr<Job> next(std::unique_lock<std::mutex>& lock) {
    ++idle;
    wake.wait(lock, [this] { return ending || !jobs.empty(); });
    --idle;
    if (jobs.empty()) return nullptr;
    auto job = std::move(jobs.front());
    jobs.pop_front();
    return job;
  }

  void work() {
    std::unique_lock lock(mutex);
    while (auto job = next(lock)) {
      if (job->given_up) continue;
      running.push_back(job);
      lock.unlock();
      job->run();
      job->run = nullptr;  // destroys the job's objects without the lock
      lock.lock();
      std::erase(running, job);
      job->done = true;
      lock.unlock();
      job->ended.notify_one();
      changed.notify_one();
      lock.lock();
    }
    --threads;
    changed.notify_all();
  }
};

BoundedCalls::BoundedCalls(std::string what, unsigned threads_max) : state_(std::make_shared<State>()) {
  state_->what = std::move(what);
  state_->threads_max = threads_max;
}

BoundedCalls::~BoundedCalls() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->wake.notify_all();
  while (state_->threads > state_->running.size() || state_->any_in_time(Clock::now()))
    state_->changed.wait_for(lock, std::chrono::milliseconds(10));
}

Status BoundedCalls::run(std::function<void()> work, Deadline deadline) {
  auto job = std::make_shared<Job>();
  job->run = std::move(work);
  job->deadline = deadline;
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.all_hang(Clock::now()))
    return Error{Errc::timed_out,
                 fmt::format("{}: {} calls before this one have not been answered", state.what, state.threads_max)};
  state.jobs.push_back(job);
  if (state.idle < state.jobs.size() && state.threads < state.threads_max) {
    ++state.threads;
    std::thread([kept = state_] { kept->work(); }).detach();
  }
  state.wake.notify_one();
  if (job->ended.wait_until(lock, deadline, [&] { return job->done; })) return {};
  job->given_up = true;
  return Error{Errc::timed_out, fmt::format("{}: no answer in time", state.what)};
}

}  // namespace weft
