#include "redis_baseline.h"

#include <hiredis/hiredis.h>

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <unordered_set>

#include "os/sys.h"

namespace weft::bench {
namespace {

constexpr std::uint64_t kPipelineMax = 10'000;
constexpr std::chrono::milliseconds kLockPause{100};  // between two attempts, as in redis-py

std::string_view text(const redisReply& reply) {
  return {reply.str, reply.len};
}

}  // namespace

struct RedisBaseline::Reply {
  explicit Reply(void* reply) : value(static_cast<redisReply*>(reply)) {}
  ~Reply() { freeReplyObject(value); }
  Reply(Reply&& other) noexcept : value(std::exchange(other.value, nullptr)) {}
  Reply& operator=(Reply&&) = delete;
  redisReply* value;
};

RedisBaseline::RedisBaseline(const std::string& socket)
    : context_(redisConnectUnix(socket.c_str())), token_(random_hex(16)) {
  if (context_ == nullptr || context_->err != 0) throw std::runtime_error("redis: no answer at " + socket);
}

RedisBaseline::~RedisBaseline() {
  redisFree(context_);
}

void RedisBaseline::append(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  redisAppendCommandArgv(context_, static_cast<int>(words.size()), texts.data(), lengths.data());
  ++waiting_;
}

RedisBaseline::Reply RedisBaseline::next() {
  void* reply = nullptr;
  if (redisGetReply(context_, &reply) != REDIS_OK) throw std::runtime_error(std::string("redis: ") + context_->errstr);
  --waiting_;
  Reply owned(reply);
  if (owned.value->type == REDIS_REPLY_ERROR) throw std::runtime_error(std::string("redis: ") + owned.value->str);
  return owned;
}

RedisBaseline::Reply RedisBaseline::command(const std::vector<std::string>& words) {
  append(words);
  return next();
}

void RedisBaseline::store(const std::string& id, const std::vector<std::string>& names) {
  append({"INCR", "model:refcount:" + id});
  append({"SADD", "models", id});
  std::vector<std::string> push = {"RPUSH", "model:prefix:" + id};
  push.insert(push.end(), names.begin(), names.end());
  append(push);
  if (waiting_ >= kPipelineMax) flush();
}

void RedisBaseline::flush() {
  while (waiting_ > 0) next();
}

void RedisBaseline::take(const std::string& lock) {
  while (command({"SET", lock, token_, "NX"}).value->type == REDIS_REPLY_NIL) std::this_thread::sleep_for(kLockPause);
}

void RedisBaseline::give(const std::string& lock) {
  command({"EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", "1",
           lock, token_});
}

// The first reader locks writers out. All readers share the token of that lock.
void RedisBaseline::begin_reading() {
  take("metadata_lock:r");
  if (command({"INCR", "metadata_lock:b"}).value->integer == 1)
    while (command({"SET", "metadata_lock:g", "writer", "NX"}).value->type == REDIS_REPLY_NIL)
      std::this_thread::sleep_for(kLockPause);
  give("metadata_lock:r");
}

void RedisBaseline::end_reading() {
  take("metadata_lock:r");
  if (command({"DECR", "metadata_lock:b"}).value->integer == 0) command({"DEL", "metadata_lock:g"});
  give("metadata_lock:r");
}

std::uint64_t RedisBaseline::best_match(const std::vector<std::string>& names, bool locked) {
  if (locked) begin_reading();
  std::unordered_set<std::string_view> wanted(names.begin(), names.end());
  Reply models = command({"SMEMBERS", "models"});
  for (std::size_t i = 0; i < models.value->elements; ++i)
    append({"LRANGE", "model:prefix:" + std::string(text(*models.value->element[i])), "0", "-1"});
  std::uint64_t best_match = 0;
  std::string best;
  for (std::size_t i = 0; i < models.value->elements; ++i) {
    Reply list = next();
    std::uint64_t match = 0;
    for (std::size_t j = 0; j < list.value->elements; ++j) match += wanted.count(text(*list.value->element[j]));
    if (match <= best_match) continue;
    best_match = match;
    best = text(*models.value->element[i]);
  }
  if (!best.empty()) {
    append({"INCR", "model:refcount:" + best});
    append({"INCR", "model:uses:" + best});
    flush();
  }
  if (locked) end_reading();
  return best_match;
}

}  // namespace weft::bench
