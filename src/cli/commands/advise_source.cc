#include "cli/commands/advise_source.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "advise/csv.h"
#include "base/text.h"
#include "events/follower.h"
#include "os/sys.h"
#include "os/unix_socket.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kPoll{200};  // longest wait before the interrupt is checked

class ModelLosses final : public LossSource {
 public:
  ModelLosses(std::unique_ptr<Store> store, std::optional<EventFollower> follower, ModelRow model,
              advise::LossNames names)
      : store_(std::move(store)), follower_(std::move(follower)), model_(std::move(model)), names_(std::move(names)) {}

  Result<bool> read(advise::LossSeries& series) override {
    WEFT_TRY(const bool changed, has_changed());
    if (!changed) return follower_.has_value();
    series.clear();
    WEFT_CHECK(each_row(*store_, list_versions(model_.id), [&](const VersionRow& row) -> Status {
      WEFT_TRY(const auto point, advise::point_of(row, names_));
      return point ? series.add(*point) : Status();
    }));
    return follower_.has_value();
  }
  void wait() override { follower_->wait(kPoll); }
  RecordedSaves saves() const override { return RecordedSaves::each; }

 private:
  // True if the model has changed since the last read, or was never read.
  Result<bool> has_changed() {
    bool changed = std::exchange(unread_, false);
    while (follower_) {
      WEFT_TRY(const auto events, follower_->next());
      if (events.empty()) break;
      changed = changed ||
                std::ranges::any_of(events, [this](const ModelEvent& event) { return concerns(event, {model_.name}); });
    }
    return changed;
  }

  std::unique_ptr<Store> store_;
  std::optional<EventFollower> follower_;  // only with `follow`
  ModelRow model_;
  advise::LossNames names_;
  bool unread_ = true;
};

class FileLosses final : public LossSource {
 public:
  // Reads standard input if `fd` is invalid.
  FileLosses(const Context& context, Fd fd, const std::string& path, advise::LossNames names)
      : context_(context),
        file_(std::move(fd)),
        fd_(file_.valid() ? file_.get() : STDIN_FILENO),
        where_(file_.valid() ? path : "standard input"),
        names_(std::move(names)),
        csv_(names_) {}

  Status begin(bool follow) {
    WEFT_TRY(const auto st, stat_fd(fd_, where_));
    grows_ = follow && S_ISREG(st.st_mode);
    return {};
  }

  Result<bool> read(advise::LossSeries& series) override {
    if (grows_) WEFT_CHECK(begin_again_if_shorter(series));
    std::array<std::byte, 64U << 10U> bytes{};
    while (wait_for(fd_, POLLIN, std::chrono::milliseconds(0))) {
      if (context_.patience().cancelled()) return Error{Errc::cancelled, ""};
      WEFT_TRY(const std::size_t got,
               grows_ ? read_some(fd_, read_bytes_, bytes, where_) : read_next(fd_, bytes, where_));
      if (got == 0) return grows_ ? Result<bool>(true) : ended(series);
      read_bytes_ += got;
      WEFT_CHECK(named(csv_.add({reinterpret_cast<const char*>(bytes.data()), got}, series)));
    }
    return true;  // a pipe that is open and empty
  }

  void wait() override {
    if (grows_)
      std::this_thread::sleep_for(kPoll);
    else
      wait_for(fd_, POLLIN, kPoll);
  }
  RecordedSaves saves() const override { return csv_.records_saves() ? RecordedSaves::some : RecordedSaves::none; }

 private:
  Result<bool> ended(advise::LossSeries& series) {
    WEFT_CHECK(named(csv_.end(series)));
    return false;
  }

  Status begin_again_if_shorter(advise::LossSeries& series) {
    WEFT_TRY(const auto st, stat_fd(fd_, where_));
    if (static_cast<std::uint64_t>(st.st_size) >= read_bytes_) return {};
    series.clear();
    csv_ = advise::CsvLosses(names_);
    read_bytes_ = 0;
    return {};
  }

  Status named(Status status) const {
    if (status.ok()) return status;
    return Error{status.error().code, fmt::format("{}: {}", where_, status.error().message)};
  }

  const Context& context_;
  Fd file_;
  int fd_;
  std::string where_;
  advise::LossNames names_;
  advise::CsvLosses csv_;
  bool grows_ = false;  // a followed regular file: its end is not final
  std::uint64_t read_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<LossSource>> losses_of_model(const Context& context, std::string_view model,
                                                    advise::LossNames names, bool follow) {
  WEFT_TRY(auto store, context.open_to_read());
  WEFT_TRY(auto row, model_of(*store, model));
  std::optional<EventFollower> follower;
  if (follow) {
    WEFT_TRY(follower, EventFollower::begin(*store));
  }
  return std::unique_ptr<LossSource>(
      std::make_unique<ModelLosses>(std::move(store), std::move(follower), std::move(row), std::move(names)));
}

Result<std::unique_ptr<LossSource>> losses_of_csv(const Context& context, const std::string& path,
                                                  advise::LossNames names, bool follow) {
  Fd fd;
  if (path != "-") {
    WEFT_TRY(fd, open_file(path, O_RDONLY));
  }
  auto source = std::make_unique<FileLosses>(context, std::move(fd), path, std::move(names));
  WEFT_CHECK(source->begin(follow));
  return std::unique_ptr<LossSource>(std::move(source));
}

}  // namespace weft
