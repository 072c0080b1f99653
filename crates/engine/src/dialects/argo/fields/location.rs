//! Lists the fields of artifact locations: stores, web servers, repositories, and the deletion of artifacts there.

use super::{NO_PODS, container::CONFIG_KEY};
use crate::admit::shape::{BOOL, COUNT, Field, Shape, TEXT, TEXTS};

/// Locations that can be read and written. A key alone means the default repository, whatever store it is written
/// under.
pub(super) const STORES: &[Field] = &[
    Field::yes("s3", &S3, "An S3 bucket, or with a key alone the default repository"),
    Field::yes("http", &HTTP, "Load it with GET, store it with PUT"),
    Field::yes("gcs", &KEYED, "A key of the default repository; Google Cloud Storage itself is not supported"),
    Field::yes("oss", &KEYED, "A key of the default repository; Alibaba Cloud OSS itself is not supported"),
    Field::yes("azure", &KEYED, "A key of the default repository; Azure Blob Storage itself is not supported"),
    Field::refused("hdfs", "Keep it in HDFS"),
    Field::refused("artifactory", "Keep it in Artifactory"),
    Field::yes("plugin", &PLUGIN, "A store that only a plugin can reach; the local store stands in for it"),
];

pub(super) const READ_ONLY: &[Field] = &[Field::yes("git", &GIT, "Check out a git repository")];

pub(super) static ARCHIVE_LOCATION: Shape = Shape::Object(&[
    &[Field::yes("archiveLogs", &BOOL, "Keep the main container's log as the artifact `main-logs`")],
    STORES,
    &[Field::refused("git", "Check out a git repository"), Field::refused("raw", "Hold the content itself")],
]);

static S3: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The object, or the beginning of the names of several"),
    Field::yes("bucket", &TEXT, "The bucket"),
    Field::yes("endpoint", &TEXT, "Host and port of the server"),
    Field::yes("region", &TEXT, "The region, `us-east-1` when it is not said"),
    Field::yes("insecure", &BOOL, "Speak plain HTTP"),
    Field::yes("accessKeySecret", &CONFIG_KEY, "The access key"),
    Field::yes("secretKeySecret", &CONFIG_KEY, "The secret key"),
    Field::yes("sessionTokenSecret", &CONFIG_KEY, "The token of a session"),
    Field::yes("caSecret", &CONFIG_KEY, "Certificates to trust, in PEM"),
    Field::yes("keyFormat", &TEXT, "How keys are made, in a repository"),
    Field::yes("keyPrefix", &TEXT, "What keys begin with, in a repository"),
    Field::refused("roleARN", "Take on a role"),
    Field::refused("useSDKCreds", "Take credentials from the environment"),
    Field::refused("createBucketIfNotPresent", "Make the bucket"),
    Field::refused("encryptionOptions", "Encrypt objects on the server"),
    Field::ignored("addressingStyle", "the style is chosen by the endpoint", "How the bucket is written in addresses"),
]]);

static KEYED: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The name in the default repository"),
    Field::yes("blob", &TEXT, "The name in the default repository"),
    Field::refused("bucket", "Name another repository"),
    Field::refused("container", "Name another repository"),
    Field::refused("endpoint", "Name another repository"),
    Field::refused("accessKeySecret", "Name another repository"),
    Field::refused("secretKeySecret", "Name another repository"),
    Field::refused("serviceAccountKeySecret", "Name another repository"),
    Field::refused("accountKeySecret", "Name another repository"),
    Field::refused("useSDKCreds", "Name another repository"),
    Field::refused("createBucketIfNotPresent", "Create another repository"),
    Field::refused("securityToken", "Name another repository"),
    Field::refused("lifecycleRule", "Name another repository"),
]]);

const NO_PLUGINS: &str = "no plugin runs here";
static PLUGIN: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The plugin"),
    Field::yes("key", &TEXT, "The name in its store"),
    Field::yes("configuration", &TEXT, "The configuration of the plugin; not used here"),
    Field::ignored("connectionTimeoutSeconds", NO_PLUGINS, "How long to wait for the plugin"),
]]);

static HTTP: Shape = Shape::Object(&[&[
    Field::yes("url", &TEXT, "The address"),
    Field::yes("headers", &HEADERS, "Header lines to send"),
    Field::yes("auth", &AUTH, "How to prove who asks"),
]]);
static HEADERS: Shape = Shape::List(&HEADER);
static HEADER: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The header"),
    Field::yes("value", &TEXT, "What it says"),
    Field::refused("valueFrom", "Take what it says from a Secret"),
]]);
static AUTH: Shape = Shape::Object(&[&[
    Field::yes("basicAuth", &BASIC_AUTH, "With a name and a password"),
    Field::refused("clientCert", "With a certificate"),
    Field::refused("oauth2", "With a token of an OAuth2 server"),
]]);
static BASIC_AUTH: Shape = Shape::Object(&[&[
    Field::yes("usernameSecret", &CONFIG_KEY, "The name"),
    Field::yes("passwordSecret", &CONFIG_KEY, "The password"),
]]);

static GIT: Shape = Shape::Object(&[&[
    Field::yes("repo", &TEXT, "The address of the repository"),
    Field::yes("revision", &TEXT, "A commit, tag or branch"),
    Field::yes("branch", &TEXT, "The branch to clone"),
    Field::yes("singleBranch", &BOOL, "Clone only that branch"),
    Field::yes("depth", &COUNT, "How many commits to clone"),
    Field::yes("fetch", &TEXTS, "References to fetch as well"),
    Field::yes("disableSubmodules", &BOOL, "Leave submodules out"),
    Field::yes("usernameSecret", &CONFIG_KEY, "The user's name"),
    Field::yes("passwordSecret", &CONFIG_KEY, "The user's password or token"),
    Field::yes("sshPrivateKeySecret", &CONFIG_KEY, "The key for SSH"),
    Field::yes("insecureIgnoreHostKey", &BOOL, "Accept any SSH host key"),
    Field::refused("insecureSkipTLS", "Accept any HTTPS certificate"),
]]);

/// Garbage collection of one artifact.
pub(super) static ARTIFACT_GC: Shape = Shape::Object(&[GC]);
/// Garbage collection of all artifacts of a run.
pub(super) static WORKFLOW_GC: Shape = Shape::Object(&[
    GC,
    &[
        Field::yes("forceFinalizerRemoval", &BOOL, "Never keep the run for its artifacts; it is never kept here"),
        Field::ignored("podSpecPatch", NO_PODS, "Changes to the deleting pods"),
    ],
]);

const GC: &[Field] = &[
    Field::yes("strategy", &GC_STRATEGY, "When it is deleted"),
    Field::ignored("podMetadata", NO_PODS, "Labels and annotations of the deleting pods"),
    Field::ignored("serviceAccountName", NO_PODS, "The account of the deleting pods"),
];
static GC_STRATEGY: Shape = Shape::Word(&["", "OnWorkflowCompletion", "OnWorkflowDeletion", "Never"]);
