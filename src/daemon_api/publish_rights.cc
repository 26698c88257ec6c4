#include "weft/store/publish.h"

#include <chrono>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "control/client.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kKept{5};
constexpr std::chrono::milliseconds kAnswerMax{2'000};
constexpr std::size_t kUsersMax = 1'024;

class AskedRights final : public PublishRights {
 public:
  explicit AskedRights(std::string socket_path) : link_(std::move(socket_path)) {}

  Status may_publish(const UserIds& user) override {
    const Key key{user.uid, user.gid, user.groups};
    const auto now = std::chrono::steady_clock::now();
    {
      const std::lock_guard lock(mutex_);
      const auto known = answers_.find(key);
      const bool is_new = known != answers_.end() && now < known->second.until;
      if (is_new && link_.is_there()) return known->second.answer;
    }
    const Status answer = ask(user);
    const bool counts = answer.ok() || answer.error().code == Errc::permission;
    const std::lock_guard lock(mutex_);
    if (answers_.size() >= kUsersMax) answers_.clear();
    if (counts) answers_.insert_or_assign(key, Kept{answer, now + kKept});
    return answer;
  }

 private:
  using Key = std::tuple<uid_t, gid_t, std::vector<gid_t>>;
  struct Kept {
    Status answer;
    std::chrono::steady_clock::time_point until;
  };

  Status ask(const UserIds& user) {
    WEFT_TRY(const auto client, link_.client());
    control::CallOptions options;
    options.patience = kAnswerMax;
    MayPublishRequest request{user.uid, user.gid};
    for (const gid_t group : user.groups) request.groups.push_back({group});
    WEFT_CHECK(client->call("may_publish", encode_fields(request), {}, options));
    return {};
  }

  control::Link link_;
  std::mutex mutex_;
  std::map<Key, Kept> answers_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<PublishRights> make_publish_rights(const std::string& store_path) {
  return std::make_unique<AskedRights>(store_path + "/" + std::string(control::kSocketName));
}

}  // namespace weft
