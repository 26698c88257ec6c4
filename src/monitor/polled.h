// A fact that takes long to find, for readers that must not wait, such as a scrape of the metrics. A thread finds it
// when a reader asks and the last answer is old. Without readers nothing runs. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/worker.h"
#include "weft/result.h"

namespace weft {

template <class T>
class Polled {
 public:
  // `find` may wait. While it fails, there is no answer, and the log names its error once. Not more often than once in
  // `every`. `time` outlives this.
  Polled(std::string name, Worker::Pause every, std::function<Result<T>()> find, const TimeSource& time = steady_time())
      : every_(every), find_(std::move(find)), time_(time), worker_(std::move(name), RetryPause(every), time) {}

  // Returns the last answer, which may be about `every` old; nothing before the first one, and after a failure.
  std::optional<T> newest() {
    const bool first = worker_.start([this] { return round(); });
    const MutexLock lock(mutex_);
    if (!first && found_ && time_.now() >= *found_ + every_) worker_.wake();
    return answer_;
  }

 private:
  Result<Worker::Pause> round() {
    Result<T> answer = find_();
    const MutexLock lock(mutex_);
    found_ = time_.now();
    answer_.reset();
    WEFT_CHECK(answer);
    answer_ = std::move(answer).value();
    return Worker::kUntilWoken;
  }

  const Worker::Pause every_;
  const std::function<Result<T>()> find_;
  const TimeSource& time_;
  Mutex mutex_;
  std::optional<T> answer_ WEFT_GUARDED_BY(mutex_);
  std::optional<Deadline> found_ WEFT_GUARDED_BY(mutex_);  // when the last round ended; empty: never
  Worker worker_;
};

}  // namespace weft
