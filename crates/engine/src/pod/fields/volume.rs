//! The fields of volumes and of their mounts.

use super::NO_PODS;
use crate::admit::shape::{BOOL, Field, MODE, QUANTITY, Shape, TEXT};

pub(crate) static VOLUMES: Shape = Shape::List(&VOLUME);
static VOLUME: Shape = Shape::Object(&[
    &[
        Field::yes("name", &TEXT, "The name mounts use"),
        Field::yes("emptyDir", &EMPTY_DIR, "A directory that lives as long as the task"),
        Field::yes("persistentVolumeClaim", &CLAIM_REF, "A claim: a directory that outlives the run"),
        Field::yes("configMap", &CONFIG_MAP, "The entries of a ConfigMap as files"),
        Field::yes("secret", &SECRET, "The entries of a Secret as files"),
        Field::yes("hostPath", &HOST_PATH, "A path of the machine"),
    ],
    LATER,
]);

/// The fields of which every volume has exactly one.
pub(crate) const SOURCES: &[&str] = &["emptyDir", "persistentVolumeClaim", "configMap", "secret", "hostPath"];

const LATER: &[Field] = &[
    Field::refused("projected", "Combine several sources into one directory"),
    Field::refused("downwardAPI", "Show fields of the pod as files"),
    Field::refused("ephemeral", "Make a claim that lives as long as the pod"),
    Field::refused("csi", "Mount through a storage driver"),
    Field::refused("nfs", "Mount an NFS share"),
    Field::refused("image", "Mount an image"),
    Field::refused("iscsi", "Mount an iSCSI disk"),
    Field::refused("fc", "Mount a fibre channel disk"),
    Field::refused("cephfs", "Mount a CephFS"),
    Field::refused("rbd", "Mount a Ceph block device"),
    Field::refused("glusterfs", "Mount a GlusterFS"),
    Field::refused("cinder", "Mount an OpenStack disk"),
    Field::refused("awsElasticBlockStore", "Mount an AWS disk"),
    Field::refused("azureDisk", "Mount an Azure disk"),
    Field::refused("azureFile", "Mount an Azure share"),
    Field::refused("gcePersistentDisk", "Mount a Google Cloud disk"),
    Field::refused("vsphereVolume", "Mount a vSphere disk"),
    Field::refused("portworxVolume", "Mount a Portworx volume"),
    Field::refused("flexVolume", "Mount through a storage plugin"),
    Field::refused("gitRepo", "Check out a git repository"),
    Field::refused("flocker", "Mount a Flocker volume"),
    Field::refused("photonPersistentDisk", "Mount a Photon disk"),
    Field::refused("quobyte", "Mount a Quobyte volume"),
    Field::refused("scaleIO", "Mount a ScaleIO volume"),
    Field::refused("storageos", "Mount a StorageOS volume"),
];

static EMPTY_DIR: Shape = Shape::Object(&[&[
    Field::yes("medium", &TEXT, "Where it is kept"),
    Field::yes("sizeLimit", &QUANTITY, "How large it may grow"),
]]);

static CLAIM_REF: Shape = Shape::Object(&[&[
    Field::yes("claimName", &TEXT, "The claim"),
    Field::yes("readOnly", &BOOL, "Nothing may be written"),
]]);

static CONFIG_MAP: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The ConfigMap"),
    Field::yes("items", &ITEMS, "Which keys, and under which names; all when left out"),
    Field::yes("defaultMode", &MODE, "Permission bits of the files"),
    Field::yes("optional", &BOOL, "It may be missing"),
]]);

static SECRET: Shape = Shape::Object(&[&[
    Field::yes("secretName", &TEXT, "The Secret"),
    Field::yes("items", &ITEMS, "Which keys, and under which names; all when left out"),
    Field::yes("defaultMode", &MODE, "Permission bits of the files"),
    Field::yes("optional", &BOOL, "It may be missing"),
]]);

static ITEMS: Shape = Shape::List(&ITEM);
static ITEM: Shape = Shape::Object(&[&[
    Field::yes("key", &TEXT, "The key"),
    Field::yes("path", &TEXT, "The file, relative to the volume"),
    Field::yes("mode", &MODE, "Permission bits of the file"),
]]);

static HOST_PATH: Shape = Shape::Object(&[&[
    Field::yes("path", &TEXT, "The path"),
    Field::ignored("type", "whatever is at the path is mounted", "What is expected to be there"),
]]);

pub(crate) static VOLUME_MOUNTS: Shape = Shape::List(&VOLUME_MOUNT);
static VOLUME_MOUNT: Shape = Shape::Object(&[&[
    Field::yes("name", &TEXT, "The volume"),
    Field::yes("mountPath", &TEXT, "Where the container sees it"),
    Field::yes("subPath", &TEXT, "A part of the volume"),
    Field::yes("readOnly", &BOOL, "Nothing may be written"),
    Field::ignored("mountPropagation", NO_PODS, "Whether later mounts are seen"),
    Field::ignored("recursiveReadOnly", NO_PODS, "Whether mounts below are read-only too"),
    Field::refused("subPathExpr", "Name a part of the volume with environment variables"),
]]);
